import { EventRuns } from "../../src/events/run/event-runs.ts";
import { Runs } from "../../src/runs/registry.ts";

/** Returns functions that start, find, resume and list runs of events. */
export function sentEvents(world: ConstructorParameters<typeof EventRuns>[0]) {
  const sending = new EventRuns(world);
  const all = new Runs(world, [sending.runs]);
  return {
    start: sending.start.bind(sending),
    once: sending.once.bind(sending),
    sendOne: sending.sendOne.bind(sending),
    runToContinue: sending.runToContinue.bind(sending),
    sentWithoutResult: sending.sentWithoutResult.bind(sending),
    findEarlierRun: sending.findEarlierRun.bind(sending),
    find: sending.runs.find.bind(sending.runs),
    resume: sending.runs.resume.bind(sending.runs),
    list: all.list.bind(all),
    part: all.part.bind(all),
    stopAll: all.stopAll.bind(all),
    get isDriving() {
      return all.isDriving;
    },
  };
}
