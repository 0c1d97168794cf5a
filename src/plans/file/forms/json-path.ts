import { getLocation } from "jsonc-parser";

/**
 * Where in JSON text a character stands, as a path such as `options[1].name`, for text without line breaks: what a call
 * gives as an object has no lines that a person knows. Empty for the value as a whole.
 */
export function jsonPathAt(text: string, offset: number): string {
  const steps = getLocation(text, offset).path.map((step) =>
    typeof step === "number" ? `[${step}]` : `.${JSON.stringify(step).slice(1, -1)}`,
  );
  return steps.join("").slice(1);
}
