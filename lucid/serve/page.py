"""The page at /: a prompt, a few settings, and the text as it comes."""

PAGE = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>lucid.serve</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
textarea { width: 100%; box-sizing: border-box; font: inherit; padding: .6rem; border: 1px solid #bbb; border-radius: .4rem }
label { margin-right: 1rem } input { width: 5rem; font: inherit } button { font: inherit; padding: .3rem 1rem }
#out { white-space: pre-wrap; border: 1px solid #ddd; border-radius: .4rem; padding: .8rem; min-height: 6rem }
#note { color: #666; font-size: .9rem }
</style></head><body>
<h1 id="name">lucid.serve</h1>
<form id="form">
<textarea id="prompt" rows="5" placeholder="Once upon a time" aria-label="prompt"></textarea>
<p><label>tokens <input id="tokens" type="number" value="64" min="1"></label>
<label>temperature <input id="temperature" type="number" value="0.7" min="0" step="0.1"></label>
<button id="go">Continue</button> <button id="stop" type="button" disabled>Stop</button></p>
</form>
<div id="out" aria-live="polite"></div><p id="note"></p>
<script>
const at = id => document.getElementById(id);
let control = null;
fetch("/v1/models").then(r => r.json()).then(m => { at("name").textContent = m.data[0].id; });
at("stop").onclick = () => control && control.abort();
at("form").onsubmit = async event => {
  event.preventDefault();
  const prompt = at("prompt").value;
  if (!prompt) return;
  control = new AbortController();
  at("go").disabled = true; at("stop").disabled = false; at("note").textContent = ""; at("out").textContent = prompt;
  const began = performance.now();
  let count = 0;
  try {
    const answer = await fetch("/v1/completions", {
      method: "POST", signal: control.signal, headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt, stream: true, max_tokens: +at("tokens").value, temperature: +at("temperature").value }) });
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\\n\\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line === "data: [DONE]") continue;
        const choice = JSON.parse(line.slice(6)).choices[0];
        if (choice) { at("out").textContent += choice.text; count++; }
      }
    }
    at("note").textContent = count + " pieces in " + ((performance.now() - began) / 1000).toFixed(1) + " s";
  } catch (error) { at("note").textContent = error.name === "AbortError" ? "stopped" : error.message; }
  at("go").disabled = false; at("stop").disabled = true; control = null;
};
</script></body></html>
"""
