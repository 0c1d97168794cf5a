import type { Loss } from "../changes/plan/plan.ts";
import type { Decided, EffectObject, EffectPart } from "../changes/rows/entries.ts";
import { amount, cutText, firstOf, thousands } from "../platform/text.ts";
import type { Asked, KnownChange, ReportedObject } from "../runs/outcome.ts";
import { nameProblem } from "../spec/names-and-contexts.ts";
import { fullest, tokensOf } from "./budget.ts";
import { fenced, plain, quoteUntrusted } from "./fence.ts";
import { many } from "./message-words.ts";

/** Returns the note that a run waits on the web page. `address`: undefined if the server has opened the page itself. */
export function waitsOnPage(runId: string, address: string | undefined): string {
  const who =
    address === undefined
      ? "a page with this run was opened for the person, who decides there"
      : `a person who may approve it decides on the page at ${address}`;
  return waits(who, runId);
}

/** Returns the status of a task while a person decides. `address`: undefined if the server opened the page itself. */
export function taskWaitsText(address: string | undefined): string {
  const where = address === undefined ? "in the page that was opened" : `on the page at ${address}`;
  return `Approval required; nothing was sent. A person decides ${where}.`;
}

/** Returns what a client shows to its user before it opens the web page on which a run waits for approval. */
export function opensPageText(effect = "a change waits there."): string {
  return `Your approval is needed on the page of this server: ${effect} Log in there to see all of it, and to decide.`;
}

export function waitsInView(runId: string): string {
  return waits("the client shows this run to the person, who decides there", runId);
}

function waits(who: string, runId: string): string {
  return `${who}; nothing was changed yet. get_run {"runId":"${runId}","waitMs":25000} waits for the decision; cancel_run ends the run`;
}

export const STRICT_REMEDY =
  "TARGETING_MCP_CONFIRM is strict: use a client that can ask (elicitation), start this server where a browser can be " +
  "opened (TARGETING_MCP_PAGE), or make the change in the web console.";

export const PAGE_NOT_OPENED_REMEDY =
  "Ask the person to run targeting-mcp page on this machine, with the settings of this server, and to decide there " +
  "within 24 hours. get_run without arguments shows the waiting run. Or use a client that can ask (elicitation).";

export const PAGE_NOT_OPENED_HINT = "nobody visited the approval page, which the server tried to open";

/** Returns the note that the person declined. `effect` is what the person saw. */
export function declinedNote(effect: string | undefined): string {
  const shown = effect === undefined ? "" : ` They were shown: ${effect}`;
  return `the person declined; nothing was changed. Do not try again unless they ask for it.${shown}`;
}

/** Returns a note with the question that the client declined. The client may not have shown it to a person. */
export function declinedInClientNote(question: string): string {
  return `the question was: ${question}`;
}

/** Returns the note that an identical call was declined `ms` milliseconds ago, so nobody was asked about this call. */
export function declinedBeforeNote(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  const ago = minutes === 0 ? "less than a minute" : amount(minutes, "minute");
  return `the same call was declined ${ago} ago, so nobody was asked again. If the person wants it after all, the same call asks again in ${amount(10 - minutes, "minute")}`;
}

export function staleNote(changed: string): string {
  return `the effect has changed since it was planned, so it cannot be approved any more; make the call again (${changed})`;
}

export const UNDECIDED_WORDS: Readonly<Record<"unanswered" | "closed", string>> = {
  unanswered: "the person has not answered the question yet",
  closed: "the question was closed without a decision",
};

export function undecidedNote(why: keyof typeof UNDECIDED_WORDS): string {
  return `${UNDECIDED_WORDS[why]}: nothing was changed`;
}

/** Returns the next steps while nobody has decided. `runId`: the run that waits, or undefined if none waits. */
export function undecidedSteps(runId: string | undefined): readonly string[] {
  const again = "ask the person. If they want the change, make the call again: they are then asked for approval";
  if (runId === undefined) return [again];
  return [
    `get_run {"runId":"${runId}","waitMs":25000} waits for an answer: an approval within 10 minutes still starts the run, while this server runs`,
    `cancel_run {"runId":"${runId}"} ends it; or ${again}`,
  ];
}

/** What a person approves: a sentence with counts, and all objects by kind. Deletions and removals come first. */
export interface Effect {
  readonly sentence: string;
  /** What the web page shows instead of `sentence`, because it shows the counts elsewhere. */
  readonly note?: string;
  /** The number of options in the targeting. Absent if it is unknown or if there are several targetings. */
  readonly optionsThere?: number | undefined;
  readonly parts: readonly EffectPart[];
}

export const WITHIN_TITLE = "Options deleted with their targeting";
export const KEPT_TITLE = "Groups that keep their last sub-option";

export const LOSS_TITLES = {
  targeting: "Targetings deleted",
  optionGroup: "Option groups deleted",
  option: "Options deleted",
  contextIds: "Options that lose Context IDs",
} as const satisfies Record<Loss["kind"], string>;

export const GAIN_TITLE = "Options that get Context IDs";

interface ChangedObjects {
  readonly length: number;
  at(object: number): Pick<ReportedObject, "_id" | "name" | "change"> | undefined;
}

export interface EffectTargeting {
  readonly optionsThere?: number;
  readonly within?: string;
  readonly withinName?: string;
  /** Whether the change is itself an undo, so that undoing it is a further one. */
  readonly isUndo?: boolean;
}

/** Returns what a call would change and, if known, which share of the options is deleted or loses Context IDs. */
export function effectOfCall(losses: readonly Loss[], objects: ChangedObjects, targeting: EffectTargeting): Effect {
  // Counted by option, because several rows of a file may change the same option. What one row adds and another one
  // removes is neither a gain nor a loss.
  const lost = new Map(
    losses.flatMap(({ kind, _id, count }) => (kind === "contextIds" ? [[_id, count] as const] : [])),
  );
  const gains = new Map<string | number, { readonly name: string; readonly _id?: string; added: number }>();
  for (let at = 0; at < objects.length; at += 1) {
    const { _id, name = _id ?? "?", change } = objects.at(at) ?? {};
    const { added = 0, removed = 0 }: KnownChange = change ?? {};
    const gain = gains.get(_id ?? at) ?? { name, ...(_id !== undefined && { _id }), added: lost.get(_id ?? "") ?? 0 };
    gain.added += added - removed;
    gains.set(_id ?? at, gain);
  }
  const gaining = [...gains.values()].flatMap(({ added, ...option }) =>
    added > 0 ? [{ ...option, says: `gets ${many(added, "Context ID")}` }] : [],
  );
  const gained = gaining.length === 0 ? [] : [`adds Context IDs to ${many(gaining.length, "option")}`];
  return {
    ...effectWords(losses, gained, targeting),
    optionsThere: targeting.optionsThere,
    parts: [...lossParts(losses), ...effectPart(GAIN_TITLE, gaining)],
  };
}

export function effectPart(title: string, objects: readonly EffectObject[]): readonly EffectPart[] {
  return objects.length === 0 ? [] : [{ title, count: objects.length, objects }];
}

/** Returns an effect as a sentence: deletions and removals, other changes (`others`), and the share of options lost. */
export function effectWords(
  losses: readonly Loss[],
  others: readonly string[] = [],
  targeting: EffectTargeting = {},
): Required<Pick<Effect, "sentence" | "note">> {
  const lost = losses.filter(isCarriedOut);
  const lossesOf = (kind: Loss["kind"]): readonly Loss[] => lost.filter((loss) => loss.kind === kind);
  const sum = (some: readonly Loss[]): number => some.reduce((total, { count }) => total + count, 0);
  const [targetings, groups] = [lossesOf("targeting"), lossesOf("optionGroup")];
  const [options, changed] = [lossesOf("option"), lossesOf("contextIds")];
  const ownContextIds = groups.reduce((total, loss) => total + (loss.ownContextIds ?? 0), 0);
  const emptied = changed.filter(({ empties }) => empties).length;
  const parts = [
    targetings.length > 0 &&
      `deletes ${many(targetings.length, "targeting")} ${sum(targetings) === 0 ? "without options" : `with ${within(targetings)}`}`,
    groups.length > 0 &&
      `deletes ${many(groups.length, "option group")} with ${ownWords(ownContextIds)}${freedWords(groups, options)}`,
    options.length > 0 && `deletes ${many(options.length, "option")} with ${contextIdWords(sum(options))}`,
    changed.length > 0 &&
      `removes ${many(sum(changed), "Context ID")} from ${many(changed.length, "option")}` +
        (emptied > 0
          ? `, ${emptied === changed.length ? "which" : `${thousands(emptied)} of which`} will be empty`
          : ""),
    ...others,
  ].filter((part) => part !== false);
  const deleted = [...targetings, ...groups, ...options];
  const undo = targeting.isUndo === true ? "A further undo" : "Undo";
  const end = deleted.length > 0 ? deletedEnd(deleted, undo) : lost.length > 0 ? ` ${undo} can bring them back.` : "";
  const changes = `This ${parts.length === 0 ? "changes nothing" : inSeries(parts)}.`;
  const stays = staysWords(losses);
  const isInTitle = deleted.length > 0 && changed.length + others.length === 0;
  return {
    sentence: `${changes}${stays}${end}${shareWords(losses, targeting, others.length > 0)}`,
    note: isInTitle ? stays.trim() : changes + stays,
  };
}

function inSeries(parts: readonly string[]): string {
  const last = parts.at(-1) ?? "";
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(", ")}, and ${last}`;
}

function ownWords(contextIds: number): string {
  return contextIds === 0 ? "no own Context IDs" : many(contextIds, "own Context ID");
}

function within(targetings: readonly Loss[]): string {
  const options = targetings.reduce((sum, { count }) => sum + count, 0);
  const contextIds = targetings.reduce((sum, loss) => sum + (loss.contextIds ?? 0), 0);
  const areCounted = targetings.every((loss) => loss.count === 0 || loss.contextIds !== undefined);
  return many(options, "option") + (areCounted ? ` and ${many(contextIds, "Context ID")}` : "");
}

/** Returns whether the service will delete an object. It keeps a sub-option that is the last content of its group. */
function isCarriedOut({ lastOf }: Loss): boolean {
  return lastOf === undefined;
}

/** Returns words for the sub-options that move to the top level because only their group is deleted. */
function freedWords(groups: readonly Loss[], options: readonly Loss[]): string {
  const deleted = idsOf(options);
  const freed = groups.reduce((sum, group) => sum + freedBy(group, deleted), 0);
  if (freed === 0) return "";
  const become = freed === 1 ? "becomes a top-level option" : "become top-level options";
  return ` (${many(freed, "sub-option")} ${become})`;
}

function idsOf(losses: readonly Loss[]): ReadonlySet<string> {
  return new Set(losses.map(({ _id }) => _id));
}

/** Counts the sub-options of a deleted group that are not themselves deleted. */
function freedBy({ count, subOptions }: Loss, deleted: ReadonlySet<string>): number {
  return subOptions?.filter((id) => !deleted.has(id)).length ?? count;
}

function staysWords(losses: readonly Loss[]): string {
  const staying = losses.filter((loss) => !isCarriedOut(loss)).length;
  if (staying === 0) return "";
  return staying === 1
    ? " 1 option stays: its group cannot be empty."
    : ` ${thousands(staying)} options stay: their groups cannot be empty.`;
}

function deletedEnd(deleted: readonly Loss[], undo: string): string {
  // Undo cannot restore objects whose names break the rules (management-api 8.3).
  const lost = deleted.filter(({ name }) => nameProblem(name) !== undefined).length;
  const refused = `the service does not accept ${lost === 1 ? "its name" : "their names"}`;
  const all = deleted.length === 1 ? "it" : "them";
  if (lost === deleted.length) return ` ${undo} cannot bring ${all} back: ${refused}.`;
  const but = lost === 0 ? "" : ` ${thousands(lost)} ${lost === 1 ? "does" : "do"} not come back: ${refused}.`;
  const isAlone = deleted.every(({ kind, count }) => kind !== "targeting" || count === 0) && deleted.length === 1;
  return ` ${undo} brings ${all} back under ${isAlone ? "a new ID" : "new IDs"}, so campaigns and ad products lose ${all}.${but}`;
}

/** Returns words for the share of the options that is deleted or loses Context IDs. `hasOthers`: with other changes. */
function shareWords(losses: readonly Loss[], targeting: EffectTargeting, hasOthers: boolean): string {
  const lost = losses.filter((loss) => loss.kind !== "targeting" && isCarriedOut(loss)).length;
  const { optionsThere = 0, within = "the targeting" } = targeting;
  if (optionsThere === 0 || lost === 0) return "";
  const percent = Math.round((100 * lost) / optionsThere);
  const part = percent === 0 ? "less than 1 %" : `${percent} %`;
  const all = many(optionsThere, "option");
  const which =
    lost < optionsThere ? `${thousands(lost)} of the ${all}` : lost === 1 ? "the only option" : `all ${all}`;
  const share = `${which} of ${targetingWords(targeting, within)} (${part})`;
  if (!hasOthers) return ` That is ${share}.`;
  const kinds = new Set(losses.filter(isCarriedOut).map(({ kind }) => kind === "contextIds"));
  const verbs = lost === 1 ? ["is deleted", "loses Context IDs"] : ["are deleted", "lose Context IDs"];
  return ` ${share} ${verbs.filter((_, at) => kinds.has(at === 1)).join(" or ")}.`;
}

/** Returns a targeting's name in quotes, or `id` if the name is unknown or invalid. An invalid name is foreign text. */
export function targetingWords({ withinName }: Pick<EffectTargeting, "withinName">, id: string): string {
  return withinName !== undefined && nameProblem(withinName) === undefined ? quoteUntrusted(withinName) : id;
}

/** Lists what a plan deletes or removes, by kind. Options that lose all their Context IDs come first. */
export function lossParts(losses: readonly Loss[]): readonly EffectPart[] {
  const first = losses
    .filter(isCarriedOut)
    .toSorted((one, other) => Number(other.empties ?? false) - Number(one.empties ?? false));
  const deleted = idsOf(first.filter(({ kind }) => kind === "option"));
  const kinds = Object.entries(LOSS_TITLES).flatMap(([kind, title]) =>
    effectPart(
      title,
      first
        .filter((loss) => loss.kind === kind)
        .map((loss) => ({
          name: shortName(loss.name),
          _id: loss._id,
          says: describeLoss(loss, kind === "optionGroup" ? freedBy(loss, deleted) : 0),
          ...(loss.kind === "targeting"
            ? { options: loss.count, ...(loss.groups !== undefined && { groups: loss.groups }) }
            : { contextIds: kind === "optionGroup" ? (loss.ownContextIds ?? 0) : loss.count }),
          ...(kind === "optionGroup" && { freed: freedBy(loss, deleted) }),
        })),
    ),
  );
  const inside = losses.flatMap(({ options = [] }) =>
    options.map(({ name, _id, contextIds }) => ({ name: shortName(name), _id, says: contextIdWords(contextIds) })),
  );
  const count = losses.reduce((sum, { options, count: all }) => sum + (options === undefined ? 0 : all), 0);
  const groups = losses.flatMap(({ name, lastOf }) => {
    const says = `keeps ${quoteUntrusted(shortName(name))}`;
    return lastOf === undefined ? [] : [{ name: shortName(lastOf.name), _id: lastOf._id, says }];
  });
  return [
    ...kinds,
    ...effectPart(WITHIN_TITLE, inside).map((part) => ({ ...part, count })),
    ...effectPart(KEPT_TITLE, groups),
  ];
}

function contextIdWords(count: number): string {
  return count === 0 ? "no Context IDs" : many(count, "Context ID");
}

function freedNamesOf({ freedNames = [] }: Loss, freed: number): string {
  if (freedNames.length === 0 || freed === 0) return "";
  const names = firstOf(freedNames, freed, (name) => quoteUntrusted(shortName(name)), { all: freed });
  const become = freed === 1 ? "becomes a top-level option" : "become top-level options";
  return `; ${names} ${become}`;
}

function describeLoss(loss: Loss, freed: number): string {
  const { kind, count, ownContextIds = 0, empties, isInGroup } = loss;
  switch (kind) {
    case "targeting":
      return count === 0 ? "no options" : within([loss]);
    case "optionGroup":
      return `group with ${ownWords(ownContextIds)} and ${many(count, "sub-option")}${freedNamesOf(loss, freed)}`;
    case "option":
      return `${isInGroup ? "sub-option with " : ""}${contextIdWords(count)}`;
    case "contextIds":
      return `loses ${many(count, "Context ID")}${empties ? ", then empty" : ""}`;
  }
}

const MAX_LETTERS = 1000;

export function shortName(name: string): string {
  return cutText(name, MAX_LETTERS);
}

const MAX_NAMED = 20;
const MAX_FOR_AGENT = 10;
/** The maximum tokens for objects with IDs and details. If they take more, only their names are shown. */
const DETAILED_TOKENS = 350;
const NAMES_TOKENS = 450;
const NAMED_TO_AGENT = [MAX_FOR_AGENT, 6, 4, 2] as const;

/** Returns an effect as a question to a person. For each kind of object, it names the first and the last ones. */
export function questionText({ sentence, parts }: Effect): string {
  return [sentence, ...parts.flatMap((part) => partLines(part, MAX_NAMED, parts.length > 1))].join("\n");
}

/** Returns an effect as text for an agent, with the names marked as foreign text. */
export function effectText(effect: Effect): string {
  const { sentence, parts } = effect;
  if (parts.length === 0) return sentence;
  const isFew = parts.every(({ count }) => count <= MAX_FOR_AGENT);
  const detailed = parts.flatMap((part) => partLines(part, MAX_FOR_AGENT, parts.length > 1));
  if (isFew && tokensOf(detailed.join("\n")) <= DETAILED_TOKENS) return [sentence, fenced(detailed)].join("\n");
  const namesOf = (most: number): readonly string[] => parts.map((part) => namesLine(part, most));
  const named = fullest(NAMED_TO_AGENT, namesOf, (lines) => tokensOf(lines.join("\n")), NAMES_TOKENS);
  return [sentence, fenced(named)].join("\n");
}

function partLines({ title, count, objects }: EffectPart, most: number, isTitled: boolean): readonly string[] {
  const { first, last, left } = ends(objects, most, count);
  const line = ({ name, _id, says }: EffectObject): string =>
    `${quoteUntrusted(name)}${_id === undefined ? "" : ` (${_id})`}${says === "" ? "" : `: ${says}`}`;
  return [
    ...(isTitled ? [`${title} (${thousands(count)}):`] : []),
    ...first.map(line),
    ...(left > 0 ? [`… ${thousands(left)} more …`] : []),
    ...last.map(line),
  ];
}

function namesLine({ title, count, objects }: EffectPart, most: number): string {
  const { first, last, left } = ends(objects, most, count);
  const names = (some: readonly EffectObject[]): string => some.map(({ name }) => quoteUntrusted(name)).join(", ");
  const rest = last.length === 0 ? "" : `, … ${thousands(left)} more …, ${names(last)}`;
  return `${title} (${thousands(count)}): ${names(first)}${rest}`;
}

function ends(objects: readonly EffectObject[], most: number, count: number) {
  if (count <= most + 1) return { first: objects, last: [], left: 0 };
  return { first: objects.slice(0, most / 2), last: objects.slice(-most / 2), left: count - most };
}

/** Returns how an effect differs from `before`, the sentence that the person has seen. */
export function changedEffect(before: string, { sentence }: Effect): string {
  const [old, now] = [before, sentence].map((text) => text.replace(/\.$/, ""));
  if (before === sentence) return "names, groups, Context IDs or details have changed; the counts are the same";
  return `before: ${old}. Now: ${now}`;
}

const MAX_DIFFERING = 20;

/** Returns a sentence for each object that was added to an effect, removed or changed since a person saw the effect. */
export function differingObjects(before: readonly EffectPart[], now: readonly EffectPart[]): readonly string[] {
  const byId = ({ title, objects }: EffectPart) =>
    objects.map((object) => [`${title} ${object._id ?? object.name}`, object] as const);
  const [saw, is] = [new Map(before.flatMap(byId)), new Map(now.flatMap(byId))];
  const sentences = [...new Set([...saw.keys(), ...is.keys()])].flatMap((key) => {
    const [old, present] = [saw.get(key), is.get(key)];
    if (old === undefined) return [`"${present?.name ?? ""}" was added`];
    if (present === undefined) return [`"${old.name}" is no longer affected`];
    if (old.name !== present.name) return [`"${old.name}" is now called "${present.name}"`];
    return old.says === present.says ? [] : [`"${old.name}": ${present.says}; before: ${old.says}`];
  });
  const more = sentences.length - MAX_DIFFERING;
  return more > 0 ? [...sentences.slice(0, MAX_DIFFERING), `${thousands(more)} more have changed`] : sentences;
}

export function askedTwiceHint(changed: string): string {
  return `the person was asked twice, since something changed: ${changed}`;
}

export function changedQuestion(changed: string, message: string): string {
  return `Something has changed since you were asked: ${changed}\n${message}`;
}

export interface Approval {
  readonly decision: "approved" | "declined" | "not_needed";
  readonly channel?: Decided["where"];
  readonly by?: string;
}

const CHANNELS = {
  agreed_in_client: "client",
  agreed_in_view: "view",
  agreed_on_page: "page",
  agreed_by_token: "token",
  agreed_in_terminal: "terminal",
} as const satisfies Partial<Record<Asked, Decided["where"]>>;

export function approvalOf(facts: {
  readonly asked?: Asked;
  readonly decided?: Pick<Decided, "who">;
}): Approval | undefined {
  const { asked, decided } = facts;
  if (asked === undefined) return undefined;
  if (asked === "not_needed") return { decision: "not_needed" };
  const channel = CHANNELS[asked];
  return decided ? approvedIn(channel, decided.who) : { decision: "approved", channel };
}

/** Returns how a run was approved. In the channel "token", this is what the agent says: the server did not ask. */
export function approvedIn(channel: Decided["where"], who: string): Approval {
  // `local` is not shown: over HTTP without a login, the server does not know who answered in the client.
  return { decision: "approved", channel, ...(who !== "local" && { by: approverName(who) }) };
}

/** Returns a decision to decline. In the channel "client", nobody is named: some clients decline without asking. */
export function declinedIn(channel: "client" | "view" | "page", who?: string): Approval {
  return { decision: "declined", channel, ...(who !== undefined && { by: approverName(who) }) };
}

/** Returns a person's name: for a login, the subject without the issuer; else the name of a token or local user. */
function approverName(who: string): string {
  const [, subject] = /^(?:\w+:)?https?:\/\/\S+ (.+)$/s.exec(who) ?? [];
  return subject ?? who.replace(/^token:/, "");
}

const PLACES = {
  client: "in the client",
  view: "in the view",
  page: "on the page",
  terminal: "in the terminal",
} as const;

/** Returns the line that says who approved or declined. Empty if no approval was needed. */
export function approvalLines(approval: Approval | undefined): readonly string[] {
  const words = approval && approvalWords(approval);
  return words === undefined ? [] : [`${words}.`];
}

/** Returns who approved or declined, and where, without a full stop. The person `reader` is called "you". */
export function approvalWords({ decision, channel, by }: Approval, reader?: string): string | undefined {
  if (decision === "not_needed" || channel === undefined) return undefined;
  if (channel === "token") return "Approved by confirmation token: the agent reports the person's approval";
  if (decision === "declined" && channel === "client") return "The client declined";
  return `${decision === "approved" ? "Approved" : "Declined"} ${PLACES[channel]}${by === undefined ? "" : ` by ${personWords(by, reader)}`}`;
}

/** Returns the name of a person for a text. If it is the name of the reader (`reader`), returns `you (NAME)`. */
export function personWords(who: string, reader?: string): string {
  const name = approverName(who);
  return name === reader ? `you (${plain(name)})` : plain(name);
}
