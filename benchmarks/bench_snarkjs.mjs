// snarkjs's groth16.prove inside this process, once for every line on stdin; one JSON line of figures for each.
// Usage: node bench_snarkjs.mjs FOLDER_WITH_NODE_MODULES ZKEY WTNS PROOF_OUT PUBLIC_OUT
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const [folder, zkey, wtns, proofOut, publicOut] = process.argv.slice(2);
const snarkjs = createRequire(resolve(join(folder, "package.json")))("snarkjs");

for await (const _ of createInterface({ input: process.stdin })) {
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  const { proof, publicSignals } = await snarkjs.groth16.prove(zkey, wtns);
  const wall_ms = performance.now() - began;
  const cpu = process.cpuUsage(cpuBefore);
  writeFileSync(proofOut, JSON.stringify(proof));
  writeFileSync(publicOut, JSON.stringify(publicSignals));
  console.log(JSON.stringify({ wall_ms, cpu_ms: (cpu.user + cpu.system) / 1e3 }));
}
process.exit(0);
