import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

test("the model takes nothing from the server, so that both cannot be wrong together", () => {
  const folder = join(import.meta.dirname, "model");
  const files = [...readdirSync(folder).map((file) => join(folder, file)), join(folder, "..", "virtual-time.ts")];
  expect(files.length).toBeGreaterThan(8);
  const imports = files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/from "([^"]+)"/g)].map(([, from]) => from),
  );
  const foreign = imports.filter((from) => !/^(?:\.\/[\w-]+\.ts|\.\.\/virtual-time\.ts|zod)$/.test(from ?? ""));
  expect(foreign).toEqual([]);
});
