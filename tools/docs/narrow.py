#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Opens every page of a built site 390 pixels wide in a browser, Chromium, and prints what is wider than the page and
does not scroll by itself, and each word of code that a line break divides; exits 1 if there is any. Without a browser
it prints that nothing was checked.
    narrow.py SITE
"""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

SITE = os.path.abspath(sys.argv[1])
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PART = 12  # pages that one start of the browser opens
# Each page is loaded in a frame, one after the other; what is found becomes the text of the page that holds the frame.
SCRIPT = """<body><iframe width="390" height="844"></iframe><pre></pre><script>
const pages = %s, frame = document.querySelector("iframe"), out = document.querySelector("pre");
function scrolls(one) {
  for (let at = one.parentElement; at; at = at.parentElement)
    if (/auto|scroll/.test(getComputedStyle(at).overflowX) && at.getBoundingClientRect().right < 391) return true;
  return false;
}
function look(page) {
  const body = frame.contentDocument.querySelector("article");
  for (const one of body ? body.querySelectorAll("*") : [])
    if (one.getBoundingClientRect().right > 391 && !scrolls(one)) {
      out.append(page + ": <" + one.tagName.toLowerCase() + "> is wider than the page: "
                 + one.textContent.trim().slice(0, 60) + "\\n");
      break;
    }
  for (const one of body ? body.querySelectorAll(":not(pre) > code .w") : [])
    if (one.getClientRects().length > 1) out.append(page + ": a line break divides " + one.textContent + "\\n");
}
let next = 0;
frame.onload = () => setTimeout(() => {
  if (next) look(pages[next - 1]);
  if (next < pages.length) frame.src = "file://%s/" + pages[next++]; else out.append("done\\n");
}, 60);
frame.src = "about:blank";
</script>"""


def check(browser, pages, folder):
    """What is wrong with some pages, a line each."""
    holder = os.path.join(folder, "narrow.html")
    with open(holder, "w") as file:
        file.write(SCRIPT % (pages, SITE))
    dom = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                          f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000", "--dump-dom", holder],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = html.unescape(re.search(r"<pre>(.*?)</pre>", dom, re.DOTALL).group(1)).splitlines() if "<pre>" in dom else []
    return found[:-1] if found[-1:] == ["done"] else [*found, f"{pages[0]} and some others could not be opened"]


browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
if not browser:
    print("narrow: no browser (Debian: chromium): the width of pages is not checked")
    sys.exit(0)
pages = sorted(os.path.relpath(os.path.join(folder, name), SITE) for folder, _, names in os.walk(SITE) for name in names
               if name.endswith(".html") and name != "404.html")
wrong = []
with tempfile.TemporaryDirectory() as folder:
    for first in range(0, len(pages), PART):
        wrong += check(browser, pages[first:first + PART], folder)
for line in wrong:
    print(f"narrow: {line}", file=sys.stderr)
print(f"narrow: {len(pages)} pages, {len(wrong)} findings")
sys.exit(bool(wrong))
