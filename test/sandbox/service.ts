import { expect } from "vitest";
import * as z from "zod";
import { type SandboxOptions, startSandbox } from "../../src/sandbox/index.ts";

/** An answer as the client gets it. */
interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

const failure = z.looseObject({
  statusCode: z.number(),
  errorCode: z.string(),
  detail: z.record(z.string(), z.unknown()).optional(),
});
const result = z.union([
  z.looseObject({ index: z.number(), success: z.literal(true), data: z.looseObject({ _id: z.string() }) }),
  z.looseObject({ index: z.number(), success: z.literal(false), error: failure }),
]);
const bulkAnswer = z.looseObject({ results: z.array(result), succeeded: z.number(), failed: z.number() });
export type Result = z.infer<typeof result>;
const record = z.looseObject({ _id: z.string() });
const page = z.looseObject({ items: z.array(record), total: z.number() });
const seeded = z.looseObject({
  targetings: z.array(z.string()),
  options: z.array(z.string()),
  audience: z.array(z.string()),
  products: z.array(z.string()),
  campaigns: z.array(z.string()),
});

/** The routes in the documents and in the page of assumptions. */
export const ROUTE = {
  createTargetings: "/context-targeting/bulk/create",
  renameTargetings: "/context-targeting/bulk/update",
  deleteTargetings: "/context-targeting/bulk/delete",
  targetings: "/context-targeting",
  addOptions: "/context-targeting/category/bulk/create",
  updateOptions: "/context-targeting/category/bulk/update",
  deleteOptions: "/context-targeting/category/bulk/delete",
  options: "/context-targeting/category",
} as const;

/** A client of a service under test: the sandbox, or a live service. */
export interface Service {
  readonly url: string;
  send(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  /** Sends a body exactly as it is. */
  sendText(method: string, path: string, text: string, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  /** Sends a bulk request that must be processed. Returns its results. */
  bulk(path: string, body: unknown): Promise<readonly Result[]>;
  /** Creates a targeting. Returns its ID. */
  create(name: string, options?: readonly unknown[]): Promise<string>;
  /** Adds options to a targeting. All must succeed. Returns their IDs. */
  add(targeting: string, items: readonly Readonly<Record<string, unknown>>[]): Promise<readonly string[]>;
  /** Gets a record by its path. */
  get(path: string): Promise<z.infer<typeof record>>;
  /** Lists options; `query` starts with a question mark. */
  list(targeting: string, query?: string): Promise<z.infer<typeof page>>;
  event(body: unknown, key?: string): Promise<Reply>;
}

/** A client of a sandbox, which also has a control plane. */
export interface SandboxService extends Service {
  seed(seed: unknown): Promise<z.infer<typeof seeded>>;
  fault(...faults: readonly unknown[]): Promise<void>;
  control(method: string, path: string, body?: unknown): Promise<Reply>;
}

/** The addresses of a service, and its keys. */
export interface Access {
  readonly targetingUrl: string;
  readonly targetingKey: string;
  readonly eventUrl: string;
  readonly appKey: string;
}

/** Returns a client of a service. */
export function serviceAt(access: Access): Service {
  async function sendText(method: string, path: string, text: string, headers: Readonly<Record<string, string>> = {}) {
    const response = await fetch(access.targetingUrl + path, {
      method,
      headers: { "x-api-key": access.targetingKey, "Content-Type": "application/json", ...headers },
      ...(text === "" ? {} : { body: text }),
    });
    return replyOf(response);
  }
  const service: Service = {
    url: access.targetingUrl,
    sendText,
    send: (method, path, body, headers) =>
      sendText(method, path, body === undefined ? "" : JSON.stringify(body), headers),
    async bulk(path, body) {
      const reply = await service.send("POST", path, body);
      expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
      const answer = bulkAnswer.parse(reply.body);
      expect(answer.results.map(({ index }) => index)).toEqual(answer.results.map((_, index) => index));
      expect(answer.succeeded).toBe(answer.results.filter(({ success }) => success).length);
      expect(answer.failed).toBe(answer.results.length - answer.succeeded);
      return answer.results;
    },
    async create(name, options) {
      const item = options === undefined ? { name } : { name, options };
      return idOf((await service.bulk(ROUTE.createTargetings, { items: [item] }))[0]);
    },
    async add(targeting, items) {
      const results = await service.bulk(ROUTE.addOptions, { items: items.map((item) => ({ targeting, ...item })) });
      return results.map(idOf);
    },
    async get(path) {
      const reply = await service.send("GET", path);
      expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
      return record.parse(reply.body);
    },
    async list(targeting, query = "") {
      const reply = await service.send("GET", `/context-targeting/${targeting}/category${query}`);
      expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
      return page.parse(reply.body);
    },
    async event(body, key = access.appKey) {
      const response = await fetch(`${access.eventUrl}/event`, {
        method: "POST",
        headers: { Authorization: key, "Content-Type": "application/json" },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
      return replyOf(response);
    },
  };
  return service;
}

/** Starts a sandbox for one test, and stops it when the test has ended. */
export async function withSandbox(
  test: (service: SandboxService) => Promise<void>,
  options: SandboxOptions = {},
): Promise<void> {
  const sandbox = await startSandbox({ lockWaitMs: 30, ...options });
  const { url } = sandbox;
  const service = serviceAt({
    targetingUrl: url,
    targetingKey: "sandbox-key",
    eventUrl: url,
    appKey: "sandbox-app-key",
  });
  const control = (method: string, path: string, body?: unknown) => service.send(method, `/_sandbox${path}`, body);
  try {
    await test({
      ...service,
      control,
      async seed(seed) {
        const reply = await control("POST", "/seed", seed);
        expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
        return seeded.parse(reply.body);
      },
      async fault(...faults) {
        const reply = await control("POST", "/faults", { faults });
        expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
      },
    });
  } finally {
    await sandbox.close();
  }
}

/** Returns the ID of the object that an item created. Throws if the item failed. */
export function idOf(given: Result | undefined): string {
  if (given?.success !== true) throw new Error(`the item did not succeed: ${JSON.stringify(given)}`);
  return given.data._id;
}

/** Returns the error of an item; undefined if it succeeded. */
export function errorOf(given: Result | undefined): z.infer<typeof failure> | undefined {
  return given?.success === false ? given.error : undefined;
}

/** Returns the error code of each item; "ok" if it succeeded. */
export function codes(results: readonly Result[]): readonly string[] {
  return results.map((given) => errorOf(given)?.errorCode ?? "ok");
}

/** Returns an entry of a list. Throws if there is none. */
export function at<T>(list: readonly T[], index: number): T {
  const entry = list[index];
  if (entry === undefined) throw new Error(`there is no entry ${index} in ${JSON.stringify(list)}`);
  return entry;
}

async function replyOf(response: Response): Promise<Reply> {
  const text = await response.text();
  const body: unknown = text === "" ? undefined : JSON.parse(text);
  return { status: response.status, headers: response.headers, body };
}
