import { applyBulk } from "./model/apply.ts";
import type { StoredLimits } from "./model/facts.ts";
import type { Project } from "./model/project.ts";
import type { BulkRequest } from "./model/requests.ts";

/**
 * A write of another user: a request to the API, or an edit in the console. The console waits for no other write, and
 * does not require unique names (management-api 4.2 rule 4).
 */
export type OtherWrite =
  | { readonly by: "api"; readonly request: BulkRequest }
  | { readonly by: "console"; readonly what: "createOption"; readonly targeting: string; readonly name: string }
  | {
      readonly by: "console";
      readonly what: "renameOption" | "renameTargeting";
      readonly id: string;
      readonly name: string;
    }
  | { readonly by: "console"; readonly what: "deleteOption"; readonly id: string }
  /** Renames the newest option with a name, for example one that the run has just created. */
  | { readonly by: "console"; readonly what: "renameNewest"; readonly from: string; readonly name: string }
  | {
      readonly by: "console";
      readonly what: "changeContexts";
      readonly id: string;
      readonly add: readonly string[];
      readonly remove: readonly string[];
    }
  | { readonly by: "console"; readonly what: "createTargeting"; readonly name: string };

/** Applies another user's write. Does nothing if its object no longer exists. */
export function writeAsOther(project: Project, limits: StoredLimits, write: OtherWrite): void {
  if (write.by === "api") {
    applyBulk(project, limits, "other", write.request);
    return;
  }
  const option = "id" in write ? project.options.get(write.id) : undefined;
  switch (write.what) {
    case "createTargeting":
      project.createTargeting("other", { name: write.name });
      return;
    case "renameTargeting": {
      const targeting = project.targetings.get(write.id);
      if (targeting !== undefined) project.renameTargeting("other", targeting, write.name);
      return;
    }
    case "createOption": {
      const { targeting, name } = write;
      if (project.targetings.has(targeting)) project.createOption("other", { targeting, name, isGroup: false });
      return;
    }
    case "renameOption":
      if (option !== undefined) project.renameOption("other", option, write.name);
      return;
    case "renameNewest": {
      const newest = [...project.options.values()].findLast(({ name }) => name === write.from);
      if (newest !== undefined) project.renameOption("other", newest, write.name);
      return;
    }
    case "changeContexts":
      // Even the console does not leave a group empty: the service has no such groups.
      if (option !== undefined && !option.isGroup) project.changeContexts("other", option, write);
      return;
    case "deleteOption":
      if (option !== undefined && option.parent === undefined) project.deleteOption("other", option);
  }
}
