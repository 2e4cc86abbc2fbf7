// Writes the dashboard as TypeScript that only compiles where every field is one of Grafana's own types (@grafana/schema):
// make grafana compiles it. Queries are left out: those of data sources have types of their own, and a test of fleet/hub holds
// them to the metrics that there are.
import fs from 'node:fs';

const board = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const { panels, ...rest } = board;
let text = "import type { Dashboard, Panel } from '@grafana/schema';\n";
text += `export const board: Partial<Dashboard> = ${JSON.stringify(rest, null, 1)};\n`;
panels.forEach(({ targets, ...panel }, i) => { text += `export const panel${i}: Partial<Panel> = ${JSON.stringify(panel, null, 1)};\n`; });
fs.writeFileSync(process.argv[3], text);
