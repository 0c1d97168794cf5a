import type { Icon } from "@modelcontextprotocol/server";

/** A target of 48 by 48 pixels, in two bits per pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwAgMAAAAqbBEUAAAADFBMVEUAAAAlY+v///8lY+sVZ0jhAAAABHRSTlMA////sy1AiAAAAMdJREFUeNqV" +
  "krsRAyEMRHUBJdCPS7jgVgEl0A8lELBVehaMBzkzyd0b/VYfMzO7gJftBwD7PwuebXCyfUwJJIl7eRVBX37TQE6/y0mAbMqeChvg7ArKdSh1Hc8M" +
  "6YIyg5yYj83sKmNB7S9LAoXVfluqHYXsKEPQUMkBH7dltqXN+VjWh5K9YAkVuKAXQTMfKi4ZdUIVjA2r7H9wJjhSn0WDnB+hRwuhudj2OZAwqjDE" +
  "ON4w+LCSsKywxrjgsPpwFPFcwiF9T+wNXQrVwdGwaCcAAAAASUVORK5CYII=";

/**
 * The server's icon as a data URI, so that hosts need not fetch it. One size and format only, since the 2026-07-28 era
 * repeats it beside every answer.
 */
export const ICONS: Icon[] = [{ src: `data:image/png;base64,${PNG}`, mimeType: "image/png", sizes: ["48x48"] }];
