// Bundles the page:  node build.mjs TO HEADER, where TO has node_modules; HEADER receives all files as C. Called by cmake/ReefDash.cmake.
import { createRequire } from "node:module";
import { copyFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const from = dirname(fileURLToPath(import.meta.url));
const to = process.argv[2];
const modules = join(to, "node_modules");
const esbuild = createRequire(join(to, "package.json"))("esbuild");

const options = { bundle: true, minify: true, legalComments: "none", nodePaths: [modules], target: "es2022", logLevel: "warning" };
esbuild.buildSync({ ...options, entryPoints: [join(from, "main.js")], format: "iife", outfile: join(to, "script.js") });
esbuild.buildSync({ ...options, entryPoints: [join(from, "style.css")], outfile: join(to, "style.css") });
for (const file of ["index.html", "icon.svg"]) copyFileSync(join(from, file), join(to, file));

// The licences of what is in the bundle stay with it.
const parts = ["Libraries in the page of `reef dash`. Reef itself is under the BSD-3-Clause licence.\n"];
for (const name of Object.keys(JSON.parse(readFileSync(join(from, "package.json"), "utf8")).dependencies)) {
  const folder = join(modules, name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (!licence || !existsSync(join(folder, licence))) throw new Error(`${name} has no licence file`);
  parts.push(`\n${"=".repeat(72)}\n${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, licence), "utf8")}`);
}
writeFileSync(join(to, "licences.txt"), parts.join(""));

// In the order in which they are looked for.
const files = [["/", "index.html", "text/html; charset=utf-8"], ["/script.js", "script.js", "text/javascript; charset=utf-8"], ["/style.css", "style.css", "text/css; charset=utf-8"],
  ["/icon.svg", "icon.svg", "image/svg+xml"], ["/licences.txt", "licences.txt", "text/plain; charset=utf-8"]];
const header = ["/* Made by src/net/page/build.mjs. */\n"];
files.forEach(([, file], i) => {
  const bytes = [...readFileSync(join(to, file))];
  const lines = [];
  for (let at = 0; at < bytes.length; at += 32) lines.push(bytes.slice(at, at + 32).join(","));
  header.push(`static const unsigned char page_${i}[] = {\n${lines.join(",\n")}};\n`);
});
header.push("static const struct {\n    const char *path, *type;\n    const unsigned char *bytes;\n    size_t size;\n} page_files[] = {\n");
files.forEach(([path, , type], i) => header.push(`    {"${path}", "${type}", page_${i}, sizeof page_${i}},\n`));
header.push("};\n");
writeFileSync(process.argv[3], header.join(""));
