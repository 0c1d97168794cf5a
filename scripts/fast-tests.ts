import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** Folders of `test/` whose tests take long by design: whole servers, many failure schedules, many inputs. */
const LONG = ["agents", "e2e", "faults", "fuzz", "kill", "load", "pages", "programs", "servers", "undo"];

/** Matches a test that replaces modules. Tests in the same process would get the replaced modules, too. */
const REPLACES_MODULES = /\bvi\.(?:mock|doMock)\(/;

/** Matches code that starts a process or reads the built command. Such tests need a build first. */
const NEEDS_A_PROCESS = /from "node:(?:child_process|cluster)"|client\/stdio(?:\.js)?"|"dist[/"]|`dist\//;

const IMPORTED = /(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g;

/**
 * Returns the test files of `npm run test:fast`, relative to the root of the repository. These need no build, run
 * quickly and can share a process. Excluded are folders of long tests, tests that start a process or read the built
 * command (directly or through another module), and tests that replace modules.
 */
export function fastTests(root = ROOT): readonly string[] {
  const starts = processStarters(root);
  const replacing = new Set(testsThatReplaceModules(root));
  const isFast = (file: string): boolean => !(replacing.has(file) || starts(join(root, file)));
  return testFiles(root).filter((file) => !LONG.includes(file.split("/")[1] ?? "") && isFast(file));
}

/**
 * Returns the test files that replace modules, relative to the root of the repository. Each runs in its own process.
 */
export function testsThatReplaceModules(root = ROOT): readonly string[] {
  return testFiles(root).filter((file) => REPLACES_MODULES.test(readFileSync(join(root, file), "utf8")));
}

/** Returns every test file, relative to the root of the repository. */
export function testFiles(root = ROOT): readonly string[] {
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => relative(root, join(root, "test", file)).replaceAll(sep, "/"))
    .sort();
}

/** Creates a function that says whether a module, or one that it imports, needs a process. */
function processStarters(root: string): (path: string) => boolean {
  const known = new Map<string, boolean>();
  const starts = (path: string): boolean => {
    const before = known.get(path);
    if (before !== undefined) return before;
    // Modules may import each other in a cycle. Until this module has been checked, it counts as one that needs no
    // process, so that the check of a cycle ends.
    known.set(path, false);
    const text = readFileSync(path, "utf8");
    const imported = [...text.matchAll(IMPORTED)].map(([, specifier = ""]) => join(dirname(path), specifier));
    const found = NEEDS_A_PROCESS.test(text) || imported.filter((one) => one.startsWith(root)).some(starts);
    known.set(path, found);
    return found;
  };
  return starts;
}
