// ffjavascript's transform over Fr of BLS12-381, once for every line on stdin; one JSON line of figures for each.
// FR_FILE holds raw little-endian Montgomery elements; the last result goes to OUT_FILE in the same form.
// Usage: node bench_ffjavascript.mjs FOLDER_WITH_NODE_MODULES FR_FILE OUT_FILE
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const [folder, frFile, outFile] = process.argv.slice(2);
const { getCurveFromName } = createRequire(resolve(join(folder, "package.json")))("ffjavascript");
const curve = await getCurveFromName("bls12381");
const elements = new Uint8Array(readFileSync(frFile));

for await (const _ of createInterface({ input: process.stdin })) {
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  const values = await curve.Fr.fft(elements);
  const wall_ms = performance.now() - began;
  const cpu = process.cpuUsage(cpuBefore);
  writeFileSync(outFile, values);
  console.log(JSON.stringify({ wall_ms, cpu_ms: (cpu.user + cpu.system) / 1e3, threads: curve.tm.concurrency }));
}
process.exit(0);
