import { SETTING_LIST } from "../../src/settings/registry.ts";
import type { Setting } from "../../src/settings/value-types.ts";
import { tableOf } from "./markdown.ts";

/**
 * Groups of settings by purpose: a heading, and a pattern of their variables. The first group contains what most people
 * need.
 */
const GROUPS: readonly (readonly [heading: string, variables: RegExp])[] = [
  [
    "Most people need these six",
    /^(?:TARGETING_API_URL|TARGETING_API_KEY|EVENT_API_URL|EVENT_APP_KEY|TARGETING_MCP_ALLOWED_DIRS|TARGETING_MCP_READ_ONLY)$/,
  ],
  [
    "What agents may change, and who approves",
    /_(?:CONFIRM|PAGE|TRUST_VIEWS|ALLOWED_TARGETINGS|MAX_[DC]\w+|TOOLSETS)$/,
  ],
  ["Sandbox", /_(?:MODE|SANDBOX_\w+)$/],
  [
    "Over HTTP: callers and addresses",
    /_(?:ACCESS_FILE|OAUTH_\w+|OWN_KEYS|PUBLIC_URL|ALLOWED_HOSTS|APPROVAL_WEBHOOK|SESSIONS|METRICS)$/,
  ],
  ["Several machines", /_(?:STORE\w*|DRIVE|PARALLEL_PROJECTS|SEAL_KEY)$/],
  ["Stored runs", /_(?:STATE_DIR|KEEP_\w+|CALLER_\w+|PROJECT)$/],
  ["Network, time and logs", /./],
];

/** Returns docs/reference/settings.md: every setting, in the first group that matches. */
export function settingsPage(): string {
  const groups = GROUPS.map(([heading], at) => {
    const own = SETTING_LIST.filter(({ variable }) => GROUPS.findIndex(([, fits]) => fits.test(variable)) === at);
    return [`## ${heading}`, tableOf(["variable", "flag", "meaning", "must be", "default"], own.map(rowOf))];
  });
  return [
    "# Settings",
    "Generated from the code by `npm run docs`. A flag overrides the environment variable, which overrides the default. " +
      "Keys have no flag, since other users of the machine can see command lines. An empty variable counts as not set. " +
      "`targeting-mcp doctor` shows each value, where it comes from, and what to fix.",
    ...groups.flat(),
    "Folders given as arguments of `targeting-mcp stdio` are added to `--allowed-dirs`.",
    "",
  ].join("\n\n");
}

function rowOf({ variable, flag, meaning, form, otherwise, secret }: Setting<unknown>): readonly string[] {
  const name = flag === undefined ? "" : `\`--${flag}\``;
  return [`\`${variable}\``, name, meaning + (secret ? " (a secret)" : ""), form.words, otherwise];
}
