// JSON-RPC with the host that embeds this document as a view (MCP Apps, 2026-01-26).

/** The parameters of messages from the host: its colour theme, or the result of the tool call of this view. */
interface HostParams {
  readonly theme?: "light" | "dark";
  readonly content?: readonly { readonly text?: string }[];
  readonly isError?: boolean;
  readonly structuredContent?: { readonly runId?: string };
  readonly _meta?: Readonly<Record<string, unknown>>;
}

export type ToolResult = HostParams;

interface Message {
  readonly jsonrpc?: string;
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: HostParams;
  readonly result?: HostParams & { readonly hostContext?: HostParams };
  readonly error?: { readonly message: string };
}

type HostHandlers = Readonly<Record<string, (params: HostParams) => void>>;

const waiting = new Map<number, (answer: Message) => void>();
let last = 0;

function post(message: object): void {
  // Any origin is accepted, because a view does not know the origin of its host. Only the parent window, which is the
  // host, gets the message.
  parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function request(method: string, params: object): Promise<NonNullable<Message["result"]>> {
  const id = ++last;
  return new Promise((resolve, reject) => {
    waiting.set(id, ({ error, result = {} }) =>
      error === undefined ? resolve(result) : reject(new Error(error.message)),
    );
    post({ id, method, params });
  });
}

/** Calls a tool of the server through the host. Rejects if the host refuses. */
export function callTool(name: string, args: object): Promise<ToolResult> {
  return request("tools/call", { name, arguments: args });
}

/** Connects to the host. From then on, passes its messages to `hears` and reports the height of the view to it. */
export async function connectToHost(hears: HostHandlers): Promise<void> {
  addEventListener("message", ({ source, data }: MessageEvent<Message | null>) => {
    if (source !== parent || data?.jsonrpc !== "2.0") return;
    const { id, method, params = {} } = data;
    if (method === undefined) {
      waiting.get(Number(id))?.(data);
      waiting.delete(Number(id));
      return;
    }
    hears[method]?.(params);
    if (id === undefined) return;
    const isKnown = method === "ping" || method in hears;
    post({ id, ...(isKnown ? { result: {} } : { error: { code: -32601, message: "Method not found" } }) });
  });
  const appInfo = { name: "targeting-mcp", version: "1.0.0" };
  const met = { appInfo, appCapabilities: {}, protocolVersion: "2026-01-26" };
  const { hostContext } = await request("ui/initialize", met);
  hears["ui/notifications/host-context-changed"]?.(hostContext ?? {});
  post({ method: "ui/notifications/initialized", params: {} });
  const { documentElement } = document;
  new ResizeObserver(() => {
    const height = Math.ceil(documentElement.getBoundingClientRect().height);
    post({ method: "ui/notifications/size-changed", params: { height } });
  }).observe(documentElement);
}
