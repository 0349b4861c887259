// An image for those who have none at hand.

import { h } from "/dom.js";

/** An image with what compression finds hard: gradients, lines, text and noise. */
export async function testChart() {
  const [width, height] = [3000, 2000];
  const canvas = h("canvas", { width, height });
  const context = canvas.getContext("2d");
  const sky = context.createLinearGradient(0, 0, width, height);
  for (const [place, color] of [[0, "#12355b"], [0.35, "#d7263d"], [0.65, "#f4b942"], [1, "#2a9d8f"]]) sky.addColorStop(place, color);
  context.fillStyle = sky;
  context.fillRect(0, 0, width, height);
  context.strokeStyle = "#ffffff";
  for (let ring = 0; ring < 60; ring += 1) {
    context.lineWidth = 1 + ring / 12;
    context.beginPath();
    context.arc(2200, 1000, 12 + ring * ring * 0.19 + ring * 2, 0, 2 * Math.PI);
    context.stroke();
  }
  context.fillStyle = "#ffffff";
  for (let line = 0; line < 9; line += 1) {
    context.font = `600 ${Math.round(150 * 0.72 ** line)}px Georgia, serif`;
    context.fillText("Sphinx of black quartz", 120, 260 + 1500 * (1 - 0.72 ** line) * 0.36);
  }
  for (let step = 0; step < 12; step += 1) {
    context.fillStyle = `hsl(${step * 30} 75% 55%)`;
    context.fillRect(120 + step * 115, 1480, 105, 180);
    context.fillStyle = `hsl(0 0% ${step * 9}%)`;
    context.fillRect(120 + step * 115, 1670, 105, 180);
  }
  const noise = context.getImageData(120, 960, 1380, 440);
  let seed = 7;
  for (let index = 0; index < noise.data.length; index += 1) {
    if (index % 4 === 3) continue;
    seed = (seed * 1103515245 + 12345) % 2147483648;
    noise.data[index] += (seed / 2147483648 - 0.5) * 90;
  }
  context.putImageData(noise, 120, 960);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.95));
  return new File([blob], "test-chart.jpg", { type: "image/jpeg" });
}
