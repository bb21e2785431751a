// Streamed JSON as text.

/** Return a function that converts JSON pieces to lines of "key: value", or to the text of the fields `only`. */
export function jsonToText(only = null) {
  let name = "";
  let field = ""; // the key at the top whose value is read
  let inside = false;
  let escaped = false;
  let code = "";
  let isKey = true;
  let depth = 0;
  let hasStarted = false;
  const stack = [];

  function convert(char) {
    if (inside) return convertString(char);
    if (!hasStarted && char !== "{" && char !== "[") return "";
    if (char === '"') {
      inside = true;
      isKey = stack.at(-1) === "{" && expectsKey;
      return isKey ? `\n${"  ".repeat(Math.max(0, depth - 1))}` : "";
    }
    if (char === "{" || char === "[") {
      hasStarted = true;
      stack.push(char);
      depth += 1;
      expectsKey = char === "{";
      return depth > 1 && char === "{" ? "\n" : "";
    }
    if (char === "}" || char === "]") {
      stack.pop();
      depth -= 1;
      expectsKey = false;
      return "";
    }
    if (char === ",") {
      expectsKey = stack.at(-1) === "{";
      return stack.at(-1) === "[" ? "\n" : "";
    }
    if (char === ":") {
      expectsKey = false;
      return "";
    }
    return /\s/.test(char) ? "" : char;
  }

  let expectsKey = true;

  function convertString(char) {
    if (code) return unicode(char);
    if (escaped) {
      escaped = false;
      if (char === "u") code = "u";
      return { n: "\n", t: "\t", r: "", b: "", f: "", u: "" }[char] ?? char;
    }
    if (char === "\\") {
      escaped = true;
      return "";
    }
    if (char !== '"') {
      name += isKey ? char : "";
      return isKey && char === "_" ? " " : char;
    }
    inside = false;
    if (isKey && depth === 1) field = name;
    name = "";
    return isKey ? ": " : "";
  }

  function unicode(char) {
    code += char;
    if (code.length < 5) return "";
    const sign = String.fromCharCode(Number.parseInt(code.slice(1), 16) || 0xfffd);
    code = "";
    return sign;
  }

  return (piece) => {
    let text = "";
    for (const char of piece) {
      const isShown = !only || (inside && !isKey && depth === 1 && only.includes(field));
      const part = convert(char);
      if (isShown) text += part;
    }
    return text;
  };
}
