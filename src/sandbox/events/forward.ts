/** What the real endpoint said to an event that was passed on. */
export interface ForwardAnswer {
  readonly status: number;
  readonly message: string;
  readonly body: unknown;
}

/** Throws a RangeError when `base` is no address to which events can be passed on. */
export function checkForward(base: string): void {
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    throw new RangeError(`events cannot be passed on to "${base}": it is no http or https address`);
  }
}

/** How long the real endpoint may take, in milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * Passes an event on to the real endpoint below `base`, with the same key and body, and gives what it answers;
 * an endpoint that cannot be reached counts as a 502.
 */
export async function forwardEvent(
  base: string,
  event: {
    readonly authorization: string | undefined;
    readonly contentType: string | undefined;
    readonly text: string;
  },
): Promise<ForwardAnswer> {
  const headers = new Headers({ "Content-Type": event.contentType ?? "application/json" });
  if (event.authorization !== undefined) headers.set("Authorization", event.authorization);
  try {
    const response = await fetch(`${base.replace(/\/+$/, "")}/event`, {
      method: "POST",
      headers,
      body: event.text,
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const text = await response.text();
    return { status: response.status, ...messageOf(text) };
  } catch (error) {
    const message = `the real endpoint could not be reached: ${error instanceof Error ? error.message : String(error)}`;
    return { status: 502, message, body: { message } };
  }
}

function messageOf(text: string): { message: string; body: unknown } {
  try {
    const body: unknown = JSON.parse(text);
    const hasMessage = typeof body === "object" && body !== null && "message" in body;
    return { message: hasMessage ? String(body.message) : text.slice(0, 1024), body };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { message: text.slice(0, 1024), body: { message: text.slice(0, 1024) } };
  }
}
