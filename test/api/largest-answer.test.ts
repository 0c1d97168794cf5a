import { expect, test } from "vitest";
import { openHttp } from "../../src/api/http.ts";
import { startProxy } from "../support/proxy.ts";
import { startStub } from "../support/stub-server.ts";

// The documented limit, repeated here by hand.
const LARGEST = 64 * 1_048_576;

/** Starts an API whose answers have this many bytes, with or without a header that declares their size. */
async function startApi(bytes: number, isDeclared: boolean) {
  const { url } = await startStub(() => (response) => {
    if (isDeclared) response.setHeader("content-length", bytes);
    const chunk = Buffer.alloc(1_048_576, 0x20);
    let left = bytes;
    const more = (): void => {
      while (left > 0 && !response.destroyed) {
        const part = chunk.subarray(0, left);
        left -= part.length;
        if (!response.write(part)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  return url;
}

test.each([
  [true, false],
  [false, false],
  [false, true],
])("an answer ends at 64 MB (length declared: %s, through a proxy: %s)", async (isDeclared, isProxied) => {
  const read = async (bytes: number) => {
    const url = await startApi(bytes, isDeclared);
    const proxy = isProxied ? (await startProxy({ to: url })).url : undefined;
    const at = isProxied ? "http://api.example.test" : url;
    const http = openHttp({ url: at, credential: {}, requestTimeoutMs: 120_000, proxy });
    try {
      return await http.send({ operation: "getTargeting", method: "GET", path: "/" });
    } finally {
      await http.close();
    }
  };
  expect((await read(LARGEST)).body).toHaveLength(LARGEST);
  await expect(read(LARGEST + 1)).rejects.toMatchObject({
    effect: "ambiguous",
    reason: "the answer is too large to read",
  });
});
