import * as z from "zod";

/** The arguments with which a tool saves rows to a file. */
export const saveArguments = (saveTo: string) => ({
  saveTo: z.string().optional().describe(saveTo),
  delimiter: z.string().optional().describe("Of .csv"),
});

/** Where a call saves to, and what separates the cells of a text file. */
export interface SaveArguments {
  readonly saveTo: string;
  readonly delimiter?: string | undefined;
}
