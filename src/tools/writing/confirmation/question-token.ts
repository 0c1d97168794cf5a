import * as z from "zod";
import { parseJson } from "../../../platform/json.ts";

const question = z.object({ digest: z.string(), effect: z.string(), changed: z.string().exactOptional() });

/** What a person was asked: what would go, as a digest and as a sentence, and what had changed where it was asked anew. */
export type Question = Readonly<z.output<typeof question>>;

/** The token of a question, which comes back with the reply; sealed on its way. */
export function writeQuestion(asked: Question): string {
  return JSON.stringify(asked);
}

/** What a reply is about; undefined where it is about something else. */
export function readQuestion(token: string): Question | undefined {
  return question.safeParse(parseJson(token)).data;
}
