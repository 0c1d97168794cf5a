import { expect, test } from "vitest";
import { moveIntoPlace } from "../../src/platform/files.ts";

/** A system on which renaming fails with these codes, in this order, before it succeeds. */
function system(platform: NodeJS.Platform, codes: readonly string[]) {
  let tries = 0;
  let slept = 0;
  return {
    platform,
    async rename() {
      const code = codes[tries];
      tries += 1;
      if (code !== undefined) throw Object.assign(new Error(code), { code });
    },
    async sleep(ms: number) {
      slept += ms;
    },
    tries: () => tries,
    slept: () => slept,
  };
}

test("on Windows a file that is held for a moment is tried again", async () => {
  const held = system("win32", ["EPERM", "EACCES", "EBUSY"]);
  await moveIntoPlace("from", "to", held);
  expect(held.tries()).toBe(4);
});

test("a file that stays held is given up after a short while, with what the system says", async () => {
  const held = system(
    "win32",
    Array.from({ length: 100 }, () => "EBUSY"),
  );
  await expect(moveIntoPlace("from", "to", held)).rejects.toMatchObject({ code: "EBUSY" });
  expect(held.slept()).toBeGreaterThan(1000);
  expect(held.slept()).toBeLessThan(5000);
});

test.each([
  ["linux", "EPERM"],
  ["darwin", "EBUSY"],
  ["win32", "ENOENT"],
  ["win32", "ENOSPC"],
] as const)("on %s %s is no such moment", async (platform, code) => {
  const failing = system(platform, [code]);
  await expect(moveIntoPlace("from", "to", failing)).rejects.toMatchObject({ code });
  expect(failing.tries()).toBe(1);
  expect(failing.slept()).toBe(0);
});
