import { realpath } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import type { WriteCall } from "../changes/call.ts";
import { changeOf, fileOf } from "../changes/change-kinds.ts";
import { isChangeKind } from "../changes/change-run.ts";
import { undefinedIfFileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { amount, firstOf, thousands } from "../platform/text.ts";
import { findOptions } from "../reads/option-contents.ts";
import type { ExecutableRun, MayExecute, Refusal } from "../runs/kind.ts";
import type { RunHeader } from "../runs/store.ts";
import { isSaveKind } from "../saves/save-runs.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import { managementOf } from "./apis.ts";
import { type ToolContext, ToolError, type ToolServices, type Toolset } from "./define-tool.ts";

/** What a caller may do now. `refused`: why the caller may not do anything any more. */
export type CallerRights =
  | { readonly refused: string }
  | {
      readonly readOnly: boolean;
      /** The folders that the caller may use. If absent, the settings decide. */
      readonly folders?: readonly string[];
    };

export interface GuardParts
  extends Pick<
    ToolServices,
    "environment" | "readOnly" | "maxDeletes" | "maxChangePercent" | "allowedDirs" | "allowedTargetings" | "waitMs"
  > {
  readonly project: string;
  readonly toolsets: readonly Exclude<Toolset, "either">[];
  readonly management: ManagementApi | undefined;
  readonly input: (runId: string) => ByteSource;
  /** Returns the current rights of a caller. If absent, only the settings decide. */
  readonly rightsOf: ((caller: string) => CallerRights | Promise<CallerRights>) | undefined;
  /** Whether this is a terminal command. Its person names the files, so a plan's base may be in any folder. */
  readonly inTerminal?: boolean | undefined;
}

/** For how many plans the result of the check is cached, because the web page checks each waiting run often. */
const MAX_PLANS = 100;

type KnownPlans = Map<string, NotAllowed | undefined>;

/** Returns a function that says why the settings or the caller's current rights forbid executing a run. */
export function executionGuard(parts: GuardParts): MayExecute {
  const plans: KnownPlans = new Map();
  return async (run) => {
    const { header } = run;
    const rights = (await parts.rightsOf?.(header.caller)) ?? { readOnly: false };
    return (
      otherProject(header, parts) ??
      bySettings(run, parts) ??
      byRights(run, rights) ??
      (await outsideFolders(run, rights, parts)) ??
      (isChangeKind(run) ? await byChange(run.header, parts, plans) : undefined)
    );
  };
}

function otherProject({ project, environment }: ExecutableRun["header"], parts: GuardParts): Refusal | undefined {
  if (project === parts.project && environment === parts.environment) return undefined;
  return {
    code: "PROJECT",
    message: "this run belongs to another project or environment than the keys of this server",
    remedy: "Use a server with the same address and key as the run.",
  };
}

function bySettings(run: ExecutableRun, { readOnly, toolsets }: GuardParts): Refusal | undefined {
  if (readOnly && !isSaveKind(run)) {
    return {
      code: "READ_ONLY",
      message: "this server only reads (TARGETING_MCP_READ_ONLY), so it does not execute this run",
      remedy: "cancel_run ends the run. To finish it, a person starts a server without TARGETING_MCP_READ_ONLY.",
    };
  }
  const toolset = toolsetOf(run);
  if (toolset === undefined || toolsets.includes(toolset)) return undefined;
  return {
    code: "TOOLSET",
    message: `this server does not have the toolset ${toolset} (TARGETING_MCP_TOOLSETS), so it does not execute this run`,
    remedy: `cancel_run ends the run. To finish it, a person starts a server with the toolset ${toolset}.`,
  };
}

function toolsetOf({ kind, header }: ExecutableRun): Exclude<Toolset, "either"> | undefined {
  if (kind === "events" || header.call.tool === "run_event_tests") return "events";
  return header.call.tool === "resume_run" ? undefined : "targeting";
}

function byRights(run: ExecutableRun, rights: CallerRights): Refusal | undefined {
  const remedy = "cancel_run ends the run. To finish it, a person first restores the access of its caller.";
  if ("refused" in rights) return { code: "CALLER", message: rights.refused, remedy };
  if (!rights.readOnly || isSaveKind(run)) return undefined;
  return { code: "CALLER", message: "the caller of this run no longer has the right to make changes", remedy };
}

async function outsideFolders(
  run: ExecutableRun,
  rights: CallerRights,
  { allowedDirs, inTerminal }: GuardParts,
): Promise<Refusal | undefined> {
  const folders = "folders" in rights ? rights.folders : undefined;
  const used = pathsWritten(run, inTerminal === true && folders === undefined);
  if (used.length === 0) return undefined;
  const given = folders ?? allowedDirs;
  // The folder of a base is a real path. An allowed folder may be a link to it.
  const real = await Promise.all(given.map((folder) => realpath(folder).catch(() => undefined)));
  const allowed = [...given, ...real.filter((folder) => folder !== undefined)];
  if (used.every((path) => allowed.some((one) => isInside(path, one)))) return undefined;
  return {
    code: "FOLDERS",
    message: "the run may write a file into a folder that its caller may no longer use",
    remedy: "Make the call again with a file in an allowed folder.",
  };
}

/** Returns paths, each of which is a file that the run writes, or a folder in which it may write one. */
function pathsWritten(run: ExecutableRun, mayUseAnyBase: boolean): readonly string[] {
  if (isSaveKind(run)) {
    const { saveTo, folders } = run.header.call.input;
    return isAbsolute(saveTo) ? [saveTo] : folders;
  }
  return isChangeKind(run) && !mayUseAnyBase ? baseFolder(run) : [];
}

function baseFolder({ header: { call } }: { readonly header: RunHeader<WriteCall> }): readonly string[] {
  const base = call.tool === "apply_plan" ? call.input.base : undefined;
  return base === undefined ? [] : [base.root];
}

function isInside(path: string, allowed: string): boolean {
  const steps = relative(allowed, path);
  return !(steps === ".." || steps.startsWith(`..${sep}`) || isAbsolute(steps));
}

async function byChange(
  header: RunHeader<WriteCall>,
  parts: GuardParts,
  plans: KnownPlans,
): Promise<Refusal | undefined> {
  const { call, runId } = header;
  const { allowedTargetings, management } = parts;
  const bytes = parts.input(runId);
  const tooMany = tooManyDeletes(call, parts.maxDeletes) ?? (await planNotApplied(header, bytes, parts, plans));
  if (tooMany !== undefined) return { code: "LIMITS", ...tooMany };
  if (allowedTargetings === undefined || management === undefined) return undefined;
  const signal = AbortSignal.timeout(parts.waitMs);
  const reading = { allowedTargetings, management: () => management.forCall?.() ?? management, signal };
  try {
    const refused = await notAllowed(call, fileOf(call) && bytes, reading);
    return refused && { code: "TARGETINGS", ...refused };
  } catch (thrown) {
    if (!isApiError(thrown) && !signal.aborted) throw thrown;
    return {
      code: "NOT_CHECKED",
      message: "the service did not say which targetings this run would change, and only some may be changed here",
      remedy: "Try again later.",
    };
  }
}

async function planNotApplied(
  { call, runId }: RunHeader<WriteCall>,
  bytes: ByteSource,
  limits: Pick<GuardParts, "maxDeletes" | "maxChangePercent">,
  plans: KnownPlans,
): Promise<NotAllowed | undefined> {
  if (call.tool !== "apply_plan") return undefined;
  if (plans.has(runId)) return plans.get(runId);
  const [{ readStoredPlan }, { notApplicable }] = await Promise.all([
    import("../plans/look-again.ts"),
    import("./kept-plan.ts"),
  ]);
  // A plan that cannot be read passes this check: applying it reports that it is not stored completely.
  const document = await undefinedIfFileError(readStoredPlan(bytes));
  if (document === undefined) return undefined;
  if (plans.size >= MAX_PLANS) plans.clear();
  const refused = notApplicable(document, limits);
  plans.set(runId, refused);
  return refused;
}

type NotAllowed = Pick<Refusal, "message" | "remedy">;

const MAX_NAMED = 5;
const MAX_ALLOWED_NAMED = 10;

export function allowedText(allowed: readonly string[]): string {
  return `TARGETING_MCP_ALLOWED_TARGETINGS allows changes only in ${firstOf(allowed, MAX_ALLOWED_NAMED, String)}`;
}

/** How many options are cached as allowed. They stay allowed, because an option never moves to another targeting. */
const MAX_KNOWN = 100_000;

/** The options that are known to belong to an allowed targeting, for each list of allowed targetings. */
const known = new WeakMap<readonly string[], Set<string>>();

/** Throws a ToolError if the settings do not allow changing one of the targetings. `bytes`: the file of the call. */
export async function checkAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  context: ToolContext,
): Promise<void> {
  const refused = await notAllowed(call, bytes, { ...context, management: () => managementOf(context) });
  if (refused !== undefined) throw new ToolError(`${refused.message}; nothing was changed`, refused.remedy);
}

interface Allowed {
  readonly allowedTargetings?: readonly string[] | undefined;
  readonly management: () => ManagementApi;
  readonly signal: AbortSignal;
}

/** Returns why the settings do not allow a call to change its targetings. Options that do not exist are ignored. */
export async function notAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  { allowedTargetings, management, signal }: Allowed,
): Promise<NotAllowed | undefined> {
  if (allowedTargetings === undefined) return undefined;
  const targets = await changeOf(call).targets(bytes);
  if (targets === undefined) {
    return {
      message: "no targeting may be created: only the targetings in TARGETING_MCP_ALLOWED_TARGETINGS may change",
      remedy: `${allowedText(allowedTargetings)}.`,
    };
  }
  const allowed = new Set(allowedTargetings);
  const targetings = [...new Set(targets.targetings)].filter((id) => !allowed.has(id));
  const remedy = `${allowedText(allowedTargetings)}.`;
  if (targetings.length > 0) return { message: refusedText("targeting", targetings), remedy };
  const inside = known.get(allowedTargetings) ?? new Set();
  known.set(allowedTargetings, inside);
  const unknown = [...new Set(targets.options)].filter((id) => isUlid(id) && !inside.has(id));
  if (unknown.length === 0) return undefined;
  const { found } = await findOptions(management(), unknown, signal);
  const foreign: string[] = [];
  for (const [id, { targeting }] of found) {
    if (targeting === undefined || !allowed.has(targeting)) foreign.push(id);
    else if (inside.size < MAX_KNOWN) inside.add(id);
  }
  return foreign.length > 0 ? { message: refusedText("option", foreign), remedy } : undefined;
}

function refusedText(kind: "targeting" | "option", ids: readonly string[]): string {
  const why = kind === "targeting" ? "may not be changed here" : "belong to targetings that may not be changed here";
  return `${amount(ids.length, kind)} ${why}: ${firstOf(ids, MAX_NAMED, String)}`;
}

export function tooManyDeletes(call: WriteCall, maxDeletes: number): NotAllowed | undefined {
  const { deletions } = changeOf(call);
  if (deletions <= maxDeletes) return undefined;
  return {
    message: `${amount(deletions, "deletion")} in one call ${deletions === 1 ? "is" : "are"} more than the ${thousands(maxDeletes)} that are allowed`,
    remedy: "Delete fewer at a time. A person can raise the limit with TARGETING_MCP_MAX_DELETES.",
  };
}
