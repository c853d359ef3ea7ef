/* Browsers start no workers for pages that are opened from the disk, and the search runs in one. There, a worker is a hidden frame whose
 * script talks to the page as it would to the page that started it. */
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.createElement("iframe");
            const base = new URL(url, location.href);
            this.frame.hidden = true;
            document.body.append(this.frame);
            const inner = this.frame.contentWindow;
            const load = (from) => new Promise((resolve, reject) => {
                const script = inner.document.createElement("script");
                script.src = new URL(from, base).href;
                script.onload = resolve;
                script.onerror = () => reject(new Error("cannot load " + script.src));
                inner.document.body.append(script);
            });
            inner.importScripts = (...urls) => urls.reduce((before, from) => before.then(() => load(from)), Promise.resolve());
            inner.postMessage = (data) => {
                const event = new MessageEvent("message", {data});
                this.dispatchEvent(event);
                if (this.onmessage) this.onmessage(event);
            };
            this.ready = load(base.href);
        }
        postMessage(data) {
            const inner = this.frame.contentWindow;
            this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", {data})));
        }
        terminate() { this.frame.remove(); }
    };
}
