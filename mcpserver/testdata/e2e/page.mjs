// A session on the Inspector's web page, in a real browser: connect, list the
// tools, call readFile. Prints what the page shows, as one JSON object.
//
//   page.mjs BROWSER URL FILE PICTURE
//
// FILE is read through the page; PICTURE gets a picture of the page at the end.

import { chromium } from "playwright-core";

const [executablePath, url, file, picture] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  // As root, without a GPU, and without asking its maker for anything.
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
page.setDefaultTimeout(60_000);
const report = { elsewhere: [] };
await page.route((u) => u.hostname !== "127.0.0.1", (route) => {
  report.elsewhere.push(route.request().url());
  return route.abort();
});

await page.goto(url);
await page.getByRole("switch", { name: /^Connect or disconnect/ }).click({ force: true });
await page.getByText("Connected", { exact: true }).waitFor();
await page.getByText("Tools", { exact: true }).click();
const tools = page.getByRole("main").getByRole("button", { name: "Read file readFile" });
await tools.waitFor();
report.heading = await page.getByRole("heading", { name: /^Tools/ }).textContent();
await tools.click();
await page.getByRole("textbox", { name: "path" }).fill(file);
await page.getByRole("button", { name: "Execute Tool" }).click();
await page.getByText("hello from the page").waitFor();
report.result = await page.getByText("hello from the page").first().textContent();
await page.screenshot({ path: picture });
await browser.close();
console.log(JSON.stringify(report));
