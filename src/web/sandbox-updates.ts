import { randomBytes } from "node:crypto";
import type { World } from "../sandbox/world.ts";
import { eventFigures } from "./event-figures.ts";
import { rowsAfter } from "./event-rows.ts";
import type { StreamSource } from "./event-stream.ts";
import { faultsMessage } from "./faults.ts";
import type { EventsMessage } from "./sandbox-wire.ts";
import { targetingSizes } from "./tree.ts";
import type { Message } from "./wire.ts";

/** How far a page is: which events it has, and which versions of the other parts. */
interface Position {
  readonly newest: number;
  readonly cleared: number;
  readonly state: number;
  readonly faults: number;
}

/** The updates of the pages of a sandbox: the events that arrive, its targetings, and its faults. */
export function sandboxUpdates(
  world: World,
  figures = eventFigures(world.events, world.sources.now),
): StreamSource<Message> {
  // Positions of a process that has ended mean nothing here.
  const process = randomBytes(6).toString("hex");
  const targetings = targetingSizes(world);
  const versions = { state: 0, faults: 0 };
  for (const part of ["state", "faults"] as const) {
    world.watch(part, () => {
      versions[part] += 1;
    });
  }
  const eventsFrom = ({ newest, cleared }: Position): EventsMessage => ({
    kind: "events",
    whole: cleared !== world.events.cleared(),
    events: rowsAfter(world.events, newest),
    counts: world.events.counts(),
    ...figures.now(),
  });
  return {
    since(told) {
      const had = positionOf(told, process);
      const now = { newest: world.events.newest(), cleared: world.events.cleared(), ...versions };
      const messages: Message[] = [];
      if (had.newest !== now.newest || had.cleared !== now.cleared) messages.push(eventsFrom(had));
      if (had.state !== now.state) {
        const sent = { version: now.state, now: world.sources.now() };
        messages.push({ kind: "targetings", targetings: targetings(), ...sent });
      }
      if (had.faults !== now.faults) messages.push(faultsMessage(world.faults));
      return { messages, position: [process, now.newest, now.cleared, now.state, now.faults].join(".") };
    },
    watch(changed) {
      const unwatch = (["state", "events", "faults"] as const).map((part) => world.watch(part, changed));
      return () => {
        for (const end of unwatch) end();
      };
    },
  };
}

function positionOf(told: string | undefined, process: string): Position {
  const [of, ...numbers] = (told ?? "").split(".");
  const [newest = -1, cleared = -1, state = -1, faults = -1] = of === process ? numbers.map(Number) : [];
  return { newest, cleared, state, faults };
}
