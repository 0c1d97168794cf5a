import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { atEnd } from "./ends.ts";

const bulkAnswer = z.object({
  results: z.array(z.object({ success: z.literal(true), data: z.object({ _id: z.string() }) })),
});

/** Starts a sandbox, and writes to it over HTTP. It ends with the test. */
export async function startTestSandbox() {
  const sandbox = await startSandbox();
  atEnd(() => sandbox.close());
  const create = async (path: string, items: readonly unknown[]): Promise<readonly string[]> => {
    const response = await fetch(`${sandbox.url}${path}`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify({ items }),
    });
    return bulkAnswer.parse(await response.json()).results.map((result) => result.data._id);
  };
  return {
    url: sandbox.url,
    /** Makes a targeting; gives its ID. */
    async targeting(name: string): Promise<string> {
      const [id] = await create("/context-targeting/bulk/create", [{ name }]);
      if (id === undefined) throw new Error("the sandbox made no targeting");
      return id;
    },
    /** Makes options of a targeting; gives their IDs. */
    options: (targeting: string, items: readonly object[]) =>
      create(
        "/context-targeting/category/bulk/create",
        items.map((item) => ({ targeting, ...item })),
      ),
  };
}
