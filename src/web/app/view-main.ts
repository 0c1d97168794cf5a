import { startView } from "./run-view.tsx";

// The script of the view that hosts embed (MCP Apps). The HTML document of the view contains it.

await startView();
