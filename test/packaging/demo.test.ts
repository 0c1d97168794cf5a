import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { fileAt } from "../../scripts/packaging/generated.ts";

test("the demo ends with every figure as it should be", async () => {
  const child = spawn(process.execPath, ["--import", "tsx", fileURLToPath(fileAt("scripts/demo.ts"))], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  expect({ code, output }).toMatchObject({
    code: 0,
    output: expect.stringContaining("All figures are as expected."),
  });
});
