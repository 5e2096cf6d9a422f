// Words for numbers and times.

// Writes dollars as the commands do.
export function usd(amount) {
  if (amount === null || amount === undefined) return "";
  const value = Number(amount), nanos = Math.abs(Math.round(value * 1e9));
  return "$" + value.toFixed(nanos >= 1e9 || nanos % 1e7 === 0 ? 2 : nanos >= 1e5 ? 4 : 9);
}

export function count(number, one, many) {
  return number === 1 ? `1 ${one}` : `${number.toLocaleString("en")} ${many || one + "s"}`;
}

export function short(number) {
  if (number < 1000) return String(number);
  if (number < 1e6) return (number / 1000).toFixed(number < 1e4 ? 1 : 0) + "k";
  return (number / 1e6).toFixed(1) + "M";
}

// The times of raymond are milliseconds or texts.
export function when(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? null : date;
}

export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
}

export function since(time) {
  const date = when(time);
  return date ? span(Date.now() - date.getTime()) : "";
}

export function clock(time) {
  const date = when(time);
  if (!date) return "";
  const two = (n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function whole(time) {
  const date = when(time);
  return date ? date.toLocaleString() : "";
}

// Compares agents by the numbers of their lineage.
export function byLineage(one, other) {
  const a = one.split("."), b = other.split(".");
  for (let i = 1; i < Math.min(a.length, b.length); i++) {
    if (a[i] !== b[i]) return Number(a[i]) - Number(b[i]);
  }
  return a.length - b.length;
}

export const KINDS = ["stuck", "running", "queued", "waiting", "failed", "finished"];
export const MARKS = { stuck: "!", running: "▶", queued: "◦", waiting: "·", failed: "✗", finished: "✓" };
