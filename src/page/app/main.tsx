import { render } from "preact";
import { PATHS } from "../paths.ts";
import { Frame } from "./frame.tsx";
import { redeem } from "./redeem.ts";
import { follow } from "./stream.ts";

render(<Frame />, document.body);
const { pathname } = location;
if (pathname.startsWith(PATHS.open)) await redeem(pathname.slice(PATHS.open.length));
else if (pathname === PATHS.callback) location.replace(PATHS.page);
else await follow();
