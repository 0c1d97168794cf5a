import * as z from "zod";

/** The advertised shape of a list of options, or of what was saved of it. */
export const optionsOutput = () =>
  z.looseObject({
    environment: z.string(),
    options: z.array(z.looseObject({})).optional(),
    total: z.number().optional(),
    topLevel: z.number().optional(),
    subOptions: z.number().optional(),
    complete: z.boolean().optional(),
    cursor: z.string().optional(),
    note: z.string().optional(),
    savedTo: z.string().optional(),
    counts: z.looseObject({}).optional(),
  });
