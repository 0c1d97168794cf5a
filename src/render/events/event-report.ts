import { BASIS_WORDS, type Finding, type RuleBasis } from "../../events/catalogue.ts";
import type { VerdictGroup } from "../../events/run/verdicts.ts";
import type { ReportedObject } from "../../runs/outcome.ts";
import type { PlaceRange } from "../../runs/report.ts";
import { plain } from "../fence.ts";
import { placesWords, placeWords } from "../places.ts";
import { basisNote } from "./basis.ts";

/** The verdict of events that share it, as answers show it. */
export interface VerdictRow {
  /** Of the first event. */
  readonly index: number;
  readonly count: number;
  /** Of the first events. */
  readonly indexes: readonly number[];
  /** The lines of these, where they came from a file. */
  readonly lines?: readonly number[];
  readonly predicted: string;
  readonly basis: RuleBasis;
  readonly observed?: string;
  readonly findings: readonly Pick<Finding, "path" | "rule" | "section" | "basis" | "message" | "fix">[];
  /** Whether what the findings say holds for the first event only. */
  readonly ofFirst?: true;
}

/** A kind of verdict with its events, whose places are their indexes in `events`. */
export function verdictRow(group: VerdictGroup, events: readonly ReportedObject[]): VerdictRow {
  const { predicted, basis, observed, count, objects, isOfFirst } = group;
  // Why an event is not sent stands among the failures.
  const findings = predicted === "ignored" || predicted === "rejected" ? [] : group.findings;
  const lines = objects.flatMap((object) => events[object]?.line ?? []);
  return {
    index: objects[0] ?? 0,
    count,
    indexes: objects,
    ...(lines.length > 0 && { lines }),
    predicted,
    basis,
    ...(observed !== undefined && { observed }),
    findings: findings.map(({ path, rule, section, basis: known, message, fix }) => ({
      path: plain(path),
      rule,
      section,
      basis: known,
      message: plain(message),
      fix: plain(fix),
    })),
    ...(isOfFirst && findings.length > 0 && { ofFirst: true }),
  };
}

/** A verdict as a line of text. */
export function verdictLine(row: VerdictRow): string {
  const { count, indexes, lines, predicted, basis, observed, findings, ofFirst } = row;
  const places = (lines ?? indexes.map((index) => index + 1)).map((at): PlaceRange => [at, at]);
  const words = placesWords(places, { byLine: lines !== undefined, omitted: count > indexes.length });
  const place = count === 1 ? words : `${count} events (${words})`;
  const seen = observed === undefined ? "" : `, observed ${observed}`;
  const found = findings.map(
    ({ path, basis: known, message, fix }) =>
      `${path === "" ? "event" : path} (${BASIS_WORDS[known]}): ${message}; ${fix}`,
  );
  const first = ofFirst ? " (so the first; the others break the same rule in another way)" : "";
  return `${place}: predicted ${predicted} (${BASIS_WORDS[basis]})${seen}${found.length > 0 ? ` — ${found.join(" | ")}${first}` : ""}`;
}

const MENDED_NAMED = 10;

/** Which names were put right, each with how many events that was and the first of them. */
export function mendedNotes(objects: readonly ReportedObject[]): readonly string[] {
  const kinds = new Map<string, { count: number; readonly first: ReportedObject }>();
  for (const object of objects) {
    for (const one of new Set((object.mended ?? []).map((name) => name.replaceAll(/\[\d+\]/g, "[]")))) {
      const kind = kinds.get(one) ?? { count: 0, first: object };
      kind.count += 1;
      kinds.set(one, kind);
    }
  }
  const told = [...kinds].sort(([, one], [, other]) => other.count - one.count);
  const named = told.slice(0, MENDED_NAMED).map(([one, { count, first }]) => {
    return `put right before sending: ${plain(one)}, in ${count === 1 ? `1 event (${placeWords(first)})` : `${count} events (first ${placeWords(first)})`}`;
  });
  const more = told.length - named.length;
  return more > 0 ? [...named, `put right in ${more} more ways: get_run shows each`] : named;
}

/** What `predicted` means, where something was sent that no sandbox shows. */
export function predictedNotes(verdicts: readonly VerdictGroup[], status: string): readonly string[] {
  const isSeen = verdicts.some(({ observed }) => observed !== undefined);
  if (isSeen || status === "planned" || verdicts.every(({ predicted }) => predicted !== "recorded")) return [];
  return [
    "predicted is what the API's documents say becomes of the event; the service answers ok to recorded and to ignored ones alike, so that nothing more can be seen",
  ];
}

/** What the words mean that say how verdicts are known. */
export function basisNotes(verdicts: readonly VerdictRow[]): readonly string[] {
  return basisNote(verdicts.flatMap(({ basis, findings }) => [basis, ...findings.map((found) => found.basis)]));
}

/** Says what an equal call before, of which was not known what it came to, means to a call of `track_event`. */
export function repeatedEventWords(repeat: "attached" | "takenUp" | "resent"): string {
  switch (repeat) {
    case "attached":
      return 'an equal call was made before, and this is its run: nothing was sent for this call; where it stays unknown, onUnknown "resend" sends it again';
    case "takenUp":
      return "an equal call was made before and was interrupted before its event left: this is its run, taken up again";
    case "resent":
      return "an equal call was made before and its answer was lost: this is its run, in which the event was sent again";
  }
}
