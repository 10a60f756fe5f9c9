// Two pens that draw the same strokes: on a canvas for the screen, as SVG for a file.

function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    ground: read("--ground"), ink: read("--ink"), soft: read("--soft"), rule: read("--rule"),
    series: Array.from({ length: 8 }, (_, i) => read(`--c${i}`)),
    good: read("--good"), bad: read("--bad"), wait: read("--wait"), idle: read("--idle"),
  };
}

class CanvasPen {
  constructor(canvas, width, height) {
    const dense = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * dense);
    canvas.height = Math.round(height * dense);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.to = canvas.getContext("2d");
    this.to.setTransform(dense, 0, 0, dense, 0, 0);
    this.to.clearRect(0, 0, width, height);
    this.to.textBaseline = "middle";
  }

  box(colour, x, y, w, h, alpha = 1) {
    this.to.globalAlpha = alpha;
    this.to.fillStyle = colour;
    this.to.fillRect(x, y, w, h);
    this.to.globalAlpha = 1;
  }

  line(colour, points, width = 1, dash = []) {
    this.to.strokeStyle = colour;
    this.to.lineWidth = width;
    this.to.setLineDash(dash);
    this.to.beginPath();
    points.forEach(([x, y], i) => (i ? this.to.lineTo(x, y) : this.to.moveTo(x, y)));
    this.to.stroke();
  }

  area(colour, points, alpha = 1) {
    this.to.globalAlpha = alpha;
    this.to.fillStyle = colour;
    this.to.beginPath();
    points.forEach(([x, y], i) => (i ? this.to.lineTo(x, y) : this.to.moveTo(x, y)));
    this.to.fill();
    this.to.globalAlpha = 1;
  }

  text(colour, words, x, y, align = "left", weight = "") {
    this.to.font = `${weight} 12px system-ui, sans-serif`.trim();
    this.to.textAlign = align;
    this.to.fillStyle = colour;
    this.to.fillText(words, x, y);
  }

  within(x, y, w, h, draw) {
    this.to.save();
    this.to.beginPath();
    this.to.rect(x, y, w, h);
    this.to.clip();
    draw();
    this.to.restore();
  }
}

const SVG = "http://www.w3.org/2000/svg";

class SvgPen {
  constructor(width, height, ground) {
    this.root = document.createElementNS(SVG, "svg");
    this.root.setAttribute("xmlns", SVG);
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.setAttribute("width", width);
    this.root.setAttribute("height", height);
    this.root.setAttribute("font-family", "system-ui, sans-serif");
    this.at = this.root;
    this.clips = 0;
    this.box(ground, 0, 0, width, height);
  }

  add(tag, attributes, words) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) {
      made.setAttribute(name, typeof value === "number" ? Number(value.toFixed(2)) : value);
    }
    if (words !== undefined) made.textContent = words;
    this.at.append(made);
    return made;
  }

  box(fill, x, y, width, height, alpha = 1) {
    this.add("rect", { x, y, width, height, fill, "fill-opacity": alpha });
  }

  line(stroke, points, width = 1, dash = []) {
    this.add("polyline", {
      points: points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" "),
      stroke, fill: "none", "stroke-width": width, "stroke-dasharray": dash.join(" "),
    });
  }

  area(fill, points, alpha = 1) {
    const shape = points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
    this.add("polygon", { points: shape, fill, "fill-opacity": alpha });
  }

  text(fill, words, x, y, align = "left", weight = "") {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    this.add("text", { x, y: y + 4, fill, "text-anchor": anchor, "font-size": 12, "font-weight": weight || "normal" }, words);
  }

  within(x, y, width, height, draw) {
    const id = `clip${this.clips += 1}`, outer = this.at;
    const clip = this.add("clipPath", { id });
    this.at = clip;
    this.add("rect", { x, y, width, height });
    this.at = outer;
    this.at = this.add("g", { "clip-path": `url(#${id})` });
    draw();
    this.at = outer;
  }
}
