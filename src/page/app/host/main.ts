// The script of the view that hosts show (MCP Apps): the document that a host is given holds it.
import { startView } from "./run-view.tsx";

await startView();
