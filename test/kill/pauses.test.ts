import { expect, inject, test } from "vitest";
import { PAUSES, pauseOnce } from "./pauses.ts";

const SAMPLE: ReadonlySet<string> = new Set(["another busy", "same upload", "events anywhere"]);

/** The quick part stops a few processes; `npm run test:kill` stops 200. */
const isEvery = inject("everyDeath") ?? false;
const KINDS = isEvery ? PAUSES : PAUSES.filter(({ run, moment }) => SAMPLE.has(`${run} ${moment}`));
const COUNT = Number(process.env.TARGETING_MCP_TEST_PAUSES ?? (isEvery ? 200 : KINDS.length));
/** Pauses are waiting for the most part: many go side by side. */
const AT_ONCE = Number(process.env.TARGETING_MCP_TEST_AT_ONCE ?? (isEvery ? 20 : KINDS.length));

test("a process that stands still for longer than its lease lasts sends nothing beside its follower", async () => {
  const seed = Number(process.env.TARGETING_MCP_TEST_SEED ?? Date.now() % 1_000_000);
  const ends: string[] = [];
  let next = 0;
  let takenOver = 0;
  const pauseInTurn = async (): Promise<void> => {
    while (next < COUNT) {
      const number = next;
      next += 1;
      const kind = KINDS[number % KINDS.length] ?? PAUSES[0];
      const about = `seed ${seed + number}, ${kind.run}, ${kind.moment}`;
      try {
        const paused = await pauseOnce(kind, seed + number);
        takenOver += paused.takenOver ? 1 : 0;
        const shown = [...new Set([...paused.late, ...paused.wrong])];
        process.stdout.write(
          `${about}: ${paused.late.length} late, ${paused.wrong.length} wrong ${shown.slice(0, 2).join("; ")}\n`,
        );
        if (shown.length > 0) {
          ends.push(
            `${about}: ${paused.late.length} late, ${paused.wrong.length} wrong: ${shown.slice(0, 3).join("; ")}`,
          );
        }
      } catch (thrown) {
        ends.push(`${about}: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, pauseInTurn));
  process.stdout.write(`${COUNT} pauses from seed ${seed} on; the other process took over in ${takenOver} of them\n`);
  expect(ends).toEqual([]);
  expect(takenOver).toBeGreaterThan(COUNT / 2);
}, 3_600_000);
