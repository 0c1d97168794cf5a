import { TOKEN_HEADER } from "../paths.ts";
import { hello, outcome } from "./state.ts";

/** What a request came to: the data of its answer, or why it was not carried out. */
export type Answered<Data> = { readonly data: Data } | { readonly message: string; readonly status: number };

/** Reads data from this server. The types are those of the server that the page came from. */
export async function read<Data>(path: string): Promise<Answered<Data>> {
  return answered(() => fetch(path));
}

/** Asks this server to do something. */
export async function send<Data>(path: string, body: unknown = {}): Promise<Answered<Data>> {
  const headers = { "Content-Type": "application/json", [TOKEN_HEADER]: hello.value?.token ?? "" };
  return answered(() => fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** What was asked for and is not answered yet: who presses a button twice wants it once. */
const underWay = new Set<string>();

/** Does something that a button stands for, and says so, or why it was refused. */
export async function act(path: string, body: unknown, done: string): Promise<boolean> {
  const asked = path + JSON.stringify(body);
  if (underWay.has(asked)) return false;
  underWay.add(asked);
  outcome.value = "";
  const answer = await send<unknown>(path, body);
  underWay.delete(asked);
  outcome.value = "message" in answer ? answer.message : done;
  return !("message" in answer);
}

async function answered<Data>(request: () => Promise<Response>): Promise<Answered<Data>> {
  try {
    const response = await request();
    const data = await response.json();
    return response.ok ? { data } : { message: messageOf(data, response.status), status: response.status };
  } catch (thrown) {
    return { message: `The server did not answer (${thrown instanceof Error ? thrown.message : thrown}).`, status: 0 };
  }
}

function messageOf(data: unknown, status: number): string {
  const isTold = typeof data === "object" && data !== null && "message" in data && typeof data.message === "string";
  return isTold && "message" in data ? String(data.message) : `The server refused it (${status}).`;
}
