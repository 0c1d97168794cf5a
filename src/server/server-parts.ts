import type { Redactor } from "../render/redact.ts";
import type { ToolServices } from "../tools/context.ts";
import type { QuestionSeal } from "./asking/ask.ts";
import type { Audit } from "./calls/audit.ts";
import type { CallsUnderWay } from "./calls-under-way.ts";
import type { Hidden, ListedTool } from "./listing.ts";
import type { Log } from "./log.ts";
import type { Observer } from "./observing/observer.ts";
import type { Skills } from "./prompts/skills.ts";

/** What servers of one process share. */
export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  /** The tools that a setting hides, by name; none where absent. */
  readonly hidden?: ReadonlyMap<string, Hidden>;
  readonly environment: "live" | "sandbox";
  /**
   * What calls are carried out with. It may be loaded by the first call, since loading it takes a fifth of the start.
   */
  readonly services: () => Promise<ToolServices>;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  /** Who calls: runs and confirmations are theirs alone. */
  readonly caller: string;
  readonly audit: Audit;
  /** Names of tools that change an API, whether they are listed or not. */
  readonly writingTools: ReadonlySet<string>;
  readonly skills?: Skills;
  /** Looks at each call. */
  readonly observer?: Observer | undefined;
}
