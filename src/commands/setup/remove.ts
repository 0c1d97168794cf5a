import { redactorFor } from "../../render/redact.ts";
import type { SettingsInput } from "../../settings/settings.ts";
import { bytesOf, checkWritable, exchange, textOf } from "./config/file.ts";
import type { Host } from "./hosts.ts";
import { type Person, undone } from "./person.ts";
import { givenKeys, keysHeld } from "./settings.ts";
import { linesRemoved } from "./shown.ts";

/**
 * Shows what this server's entry in a host's file is, and takes it out when the person agrees; the file as it was is
 * kept beside it. Gives the exit code: 1 when nothing was taken out for want of a yes. Throws an UnsafeChange where the
 * file cannot be changed safely.
 */
export async function takeOut(host: Host, file: string, input: SettingsInput, person: Person): Promise<number> {
  const { text: redacted } = redactorFor([...givenKeys(input).values()]);
  while (true) {
    const bytes = await bytesOf(file);
    const content = bytes && textOf(bytes);
    const old = content === undefined ? undefined : host.list.entryIn(content);
    if (content === undefined || old === undefined) {
      person.say(`${file} has no entry of this server.`);
      return 0;
    }
    await checkWritable(file);
    const after = host.list.without(content);
    person.say(`${host.title}: ${file}\n\n${redacted(linesRemoved(host.list, old, person.launch.args))}\n`);
    if (!person.agreed && (await person.ask?.("Take this out?")) !== true) {
      person.say(undone(person, "Nothing was taken out", "takes it out without asking"));
      return 1;
    }
    const exchanged = await exchange(file, { before: bytes, after, isPrivate: false });
    if (exchanged.done) {
      const held = keysHeld(old);
      const keys =
        held.length === 0 ? "" : `, which still holds ${held.join(" and ")}: delete it when you need it no more`;
      person.say(`Taken out. The file as it was: ${exchanged.kept}${keys}\nRestart ${host.title}.`);
      return 0;
    }
    person.say(`${file} has changed meanwhile, so that nothing was taken out yet.`);
  }
}
