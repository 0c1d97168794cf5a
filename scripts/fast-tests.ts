import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** Folders of `test/` whose tests take long by their purpose: whole servers, schedules of faults, many inputs. */
const LONG = ["agents", "e2e", "faults", "fuzz", "kill", "load", "pages", "programs"];

/** A test that puts others in the place of modules, which tests that share their modules would get as well. */
const REPLACES_MODULES = /\bvi\.(?:mock|doMock)\(/;

/** What starts a process, and what reads the built command, which needs a build first. */
const NEEDS_A_PROCESS = /from "node:(?:child_process|cluster)"|client\/stdio(?:\.js)?"|"dist[/"]|`dist\//;

const IMPORTED = /(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g;

/**
 * The test files of `npm run test:fast`, from the root of the repository: all but those in a folder of long tests, and
 * those that start a process or read the built command, themselves or through a module of this repository, and those
 * that replace modules.
 */
export function fastTests(root = ROOT): readonly string[] {
  const starts = processStarters(root);
  const replacing = new Set(testsThatReplaceModules(root));
  const isFast = (file: string): boolean => !(replacing.has(file) || starts(join(root, file)));
  return testFiles(root).filter((file) => !LONG.includes(file.split("/")[1] ?? "") && isFast(file));
}

/** The test files that put others in the place of modules, from the root of the repository: each runs by itself. */
export function testsThatReplaceModules(root = ROOT): readonly string[] {
  return testFiles(root).filter((file) => REPLACES_MODULES.test(readFileSync(join(root, file), "utf8")));
}

/** Every test file, from the root of the repository. */
export function testFiles(root = ROOT): readonly string[] {
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => relative(root, join(root, "test", file)).replaceAll(sep, "/"))
    .sort();
}

/** Tells of a module, by its path, whether it or one that it imports needs a process. */
function processStarters(root: string): (path: string) => boolean {
  const known = new Map<string, boolean>();
  const starts = (path: string): boolean => {
    const before = known.get(path);
    if (before !== undefined) return before;
    // Modules that import each other in a circle: this one is not known yet, and its own text decides.
    known.set(path, false);
    const text = readFileSync(path, "utf8");
    const imported = [...text.matchAll(IMPORTED)].map(([, specifier = ""]) => join(dirname(path), specifier));
    const found = NEEDS_A_PROCESS.test(text) || imported.filter((one) => one.startsWith(root)).some(starts);
    known.set(path, found);
    return found;
  };
  return starts;
}
