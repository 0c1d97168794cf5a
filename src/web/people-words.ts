import { RESUME } from "../answers/message-words.ts";

const TOOL =
  /\b(?:apply|bulk|cancel|create|delete|generate|get|inspect|list|move|plan|resume|run|track|undo|update)_[a-z_]+\b/;

/** A message or remedy as the page shows it to people, who press buttons where an agent calls tools. */
export function forPeople(text: string): string {
  const pressed = text
    .replaceAll(RESUME, "Press Resume run.")
    .replaceAll("then resume_run.", "then press Resume run.")
    .replaceAll("resume_run may settle it", "Resume run may settle it");
  return TOOL.test(pressed) ? `For the agent: ${pressed}` : pressed;
}
