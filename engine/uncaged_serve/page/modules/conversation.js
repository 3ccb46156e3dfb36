// JSON-RPC 2.0 over the WebSocket of the dispatcher. A lost connection is made again; what was
// followed is asked for from the last record on.

import { token } from "./session.js";

const RETRY_MS = [300, 1000, 3000];
const CALL_MS = 60_000;

export class ConversationClient {
  #socket = null;
  #next = 1;
  #pending = new Map();
  #ended = false;
  #tries = 0;
  #waiting = [];

  /** onNotice(method, params), onState("live" | "waiting"): "live" after each connection. */
  constructor({ onNotice, onState }) {
    this.onNotice = onNotice;
    this.onState = onState;
    this.#connect();
  }

  #connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/dispatcher`, ["uncaged-workflow", `uncaged-token.${token()}`]);
    this.#socket = socket;
    socket.onopen = () => {
      this.#tries = 0;
      for (const text of this.#waiting.splice(0)) socket.send(text);
      this.onState("live");
    };
    socket.onmessage = ({ data }) => {
      for (const message of [JSON.parse(data)].flat()) this.#take(message);
    };
    socket.onclose = () => {
      for (const { reject, timer } of this.#pending.values()) {
        clearTimeout(timer);
        reject(new Error("the connection to the server was lost"));
      }
      this.#pending.clear();
      this.#waiting = [];
      if (this.#ended) return;
      this.onState("waiting");
      setTimeout(() => this.#ended || this.#connect(), RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)]);
    };
  }

  #take(message) {
    if (message.method) {
      this.onNotice(message.method, message.params);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    this.#pending.delete(message.id);
    clearTimeout(pending.timer);
    if (message.error) pending.reject(new Error(message.error.message));
    else pending.resolve(message.result);
  }

  call(method, params = {}) {
    const id = this.#next++;
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error(`${method}: the server did not answer within a minute`));
      }, CALL_MS);
      this.#pending.set(id, { resolve, reject, timer });
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
      else this.#waiting.push(text);
    });
  }

  close() {
    this.#ended = true;
    this.#socket.close();
  }
}
