import {
  ADDRESS_VARIABLE,
  type EmittedCase,
  EVENT_PATH,
  emittedCases,
  emittedHeader,
  KEY,
  NO_SANDBOX,
  SANDBOX_ARGUMENTS,
} from "./emit-frame.ts";
import type { EventSuite } from "./suite.ts";

/** The line that ends a body in the script; a body is one line of JSON, which is never this. */
const END_OF_BODY = "END_OF_EVENT";

/**
 * Writes a suite as a POSIX shell script that posts every event with curl, compares the answers, prints what differs,
 * and ends with status 1 if anything did.
 * It starts a sandbox of its own, unless its environment names a service.
 */
export function emitCurl(suite: EventSuite): string {
  const header = emittedHeader(suite, "Run it with: sh <this file>");
  return `#!/bin/sh
${header.map((line) => `# ${line}\n`).join("")}set -u
base_url=\${${ADDRESS_VARIABLE}:-}
app_key=\${${KEY.variable}:-${KEY.fallback}}

${START_SANDBOX}
[ -n "$base_url" ] || start_sandbox
base_url=\${base_url%/}
sent=0
wrong=0

# check ID STATUS MESSAGE: posts the event on standard input; "-" stands for any status or message.
check() {
  sent=$((sent + 1))
  answer=$(curl -sS -X POST -H "Authorization: $app_key" -H 'Content-Type: application/json' \\
    --data-binary @- -w '\\n%{http_code}' "$base_url${EVENT_PATH}")
  status=$(printf '%s\\n' "$answer" | tail -n 1)
  message=$(printf '%s\\n' "$answer" | sed -n 's/.*"message"[[:space:]]*:[[:space:]]*"\\([^"]*\\)".*/\\1/p')
  if { [ "$2" != - ] && [ "$2" != "$status" ]; } || { [ "$3" != - ] && [ "$3" != "$message" ]; } || [ -z "$message" ]; then
    wrong=$((wrong + 1))
    printf 'MISMATCH %s: expected %s %s, got %s %s\\n' "$1" "$2" "$3" "$status" "$message"
  fi
}

${emittedCases(suite).map(checksOf).join("\n")}
printf '%s events sent, %s mismatches\\n' "$sent" "$wrong"
[ "$wrong" -eq 0 ]
`;
}

/**
 * Starts a sandbox through npx, and ends it with the script. `exec` puts it in the place of the shell that npx starts,
 * which would keep the signal to itself.
 */
const START_SANDBOX = `start_sandbox() {
  log=$(mktemp)
  npx -y -p targeting-mcp -c 'exec ${SANDBOX_ARGUMENTS}' >"$log" &
  sandbox=$!
  trap 'kill "$sandbox" 2>/dev/null; rm -f "$log"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  while [ -z "$base_url" ]; do
    kill -0 "$sandbox" 2>/dev/null || { echo "${NO_SANDBOX}" >&2; exit 2; }
    sleep 1
    base_url=$(sed -n 's/^Sandbox .*: \\(http:.*\\)$/\\1/p' "$log")
  done
}
`;

function checksOf({ id, title, expected, basis, answer, events }: EmittedCase): string {
  const command = `check ${quoted(id)} ${answer.statusCode ?? "-"} ${quoted(answer.message ?? "-")}`;
  const checks = events.map((event) => `${command} <<'${END_OF_BODY}'\n${JSON.stringify(event)}\n${END_OF_BODY}\n`);
  return `# ${title}: ${expected} (${basis})\n${checks.join("")}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
