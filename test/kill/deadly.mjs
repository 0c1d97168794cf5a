// Loaded before the command (`node --import`). Kills the process with SIGKILL when it changes its files. DEADLY is
// `operation:N`, to die just before the Nth change to the file system, or `line:N`, to die in the middle of the Nth
// line of journals, when everything before it is on the disk. The command itself is not changed.

import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

const [what, number] = (process.env.DEADLY ?? "").split(":");
const dieAt = Number(number);
let operations = 0;
let lines = 0;

function die() {
  process.kill(process.pid, "SIGKILL");
  // Does nothing until the signal arrives.
  for (;;);
}

function countOperation() {
  operations += 1;
  if (what === "operation" && operations === dieAt) die();
}

/**
 * Counts the lines that are written to a journal. If the process is to die in one of them, writes only a part of it.
 */
async function countLines(handle, given) {
  const text = Buffer.concat([given].flat().map((piece) => Buffer.from(piece))).toString();
  const added = text.split("\n").length - 1;
  if (what === "line" && lines + added >= dieAt) {
    const whole = text.split("\n").slice(0, dieAt - lines - 1);
    const [cut = ""] = text.split("\n").slice(dieAt - lines - 1);
    await handle.writeWhole([...whole, cut.slice(0, Math.ceil(cut.length / 2))].join("\n"));
    die();
  }
  lines += added;
}

const { open } = fs;
fs.open = async (path, flags, mode) => {
  const changes = flags !== undefined && flags !== "r";
  if (changes) countOperation();
  const handle = await open(path, flags, mode);
  if (!changes) return handle;
  const isJournal = String(path).endsWith("journal.ndjson");
  const writeWhole = handle.appendFile.bind(handle);
  // Lines that are written with another method would not be counted here. The tests would notice, because they check in
  // how many lines processes died.
  for (const name of ["appendFile", "writeFile", "write", "writev", "datasync", "sync", "truncate"]) {
    const method = handle[name].bind(handle);
    handle[name] = async (...given) => {
      countOperation();
      if (isJournal && (name === "appendFile" || name === "writev")) await countLines({ writeWhole }, given[0]);
      return method(...given);
    };
  }
  return handle;
};
for (const name of ["mkdir", "rename", "rm", "writeFile", "appendFile", "unlink", "link"]) {
  const method = fs[name];
  fs[name] = async (...given) => {
    countOperation();
    return method(...given);
  };
}
syncBuiltinESMExports();
