// Opens a trace in Perfetto's own UI and engine, counts what its importer found wrong, and takes a picture.
// usage: node perfetto_check.mjs URL CHROMIUM PICTURE.png  -> one JSON object on stdout
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.cwd() + '/'));
const { chromium } = require('playwright-core');
const [url, executablePath, picture] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1600, height: 1320 } });
page.on('pageerror', (error) => console.error(`page: ${error.message}`));
await page.goto(url);
await page.waitForFunction(() => window.app !== undefined, null, { timeout: 60000 });
await page.waitForFunction(() => window.app.trace?.engine !== undefined, null, { timeout: 120000 });
await page.waitForTimeout(4000);

const found = await page.evaluate(async () => {
  const engine = window.app.trace.engine;
  async function rows(sql, spec) {
    const result = await engine.query(sql);
    const out = [];
    for (const it = result.iter(spec); it.valid(); it.next()) {
      out.push(Object.fromEntries(Object.keys(spec).map((key) => [key, it[key]])));
    }
    return out;
  }
  const text = 'str', number = 0;
  return {
    errors: await rows("select name, value from stats where severity in ('error','data_loss') and value > 0", { name: text, value: number }),
    slices: (await rows('select count(*) as n from slice', { n: number }))[0].n,
    counters: await rows('select name, count(*) as n from counter join counter_track t on t.id = track_id group by name', { name: text, n: number }),
    stages: await rows("select name, sum(dur) / 1e6 as ms from slice where category = 'stage' and name in ('synth','prove','release','verify') group by name", { name: text, ms: number }),
    gap: await rows("select name, dur / 1e6 as ms from slice where category = 'gap'", { name: text, ms: number }),
    flows: (await rows('select count(*) as n from flow', { n: number }))[0].n,
  };
});

await page.evaluate(() => window.app.trace.workspace.children.forEach((track) => track.expand()));
await page.waitForTimeout(6000);
await page.screenshot({ path: picture });

// A second picture on the scale of the gap, where there is one.
const zoomed = await page.evaluate(async () => {
  const result = await window.app.trace.engine.query("select ts, dur from slice where category = 'gap' limit 1");
  const it = result.iter({ ts: 0n, dur: 0n });
  if (!it.valid()) return false;
  window.app.trace.scrollTo({ time: { start: it.ts, end: it.ts + it.dur, viewPercentage: 0.5 } });
  return true;
});
if (zoomed) {
  await page.waitForTimeout(2500);
  await page.screenshot({ path: picture.replace(/\.png$/, '_gap.png') });
}
await browser.close();
console.log(JSON.stringify(found));
