/**
 * Measures how long an editor waits for `svc language-server` on a configuration of 2,600 lines with 20 imports: from a keystroke
 * to its diagnostics (60 ms median, 150 ms at the 99th percentile), for completion (20 ms), and from the start to the first
 * diagnostics (400 ms). Other programs may run, so the bounds of elapsed time are three times as long. All bounds are longer
 * while the machine computes more slowly than the reference machine.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Editor, endEditors, positionIn } from '../../cli/language-server/editor.ts';
import { temporaryFolder } from '../../harness.ts';
import { machineSlowness } from './machine-speed.ts';

const ELAPSED_FACTOR = 3;
const KEYSTROKES = 300;

/** Writes a configuration of 2,600 lines with 20 imports, and returns its folder and text. */
function largeConfiguration(): { folder: string; text: string } {
	const folder = temporaryFolder();
	let text = '';
	for (let part = 0; part < 20; part++) {
		writeFileSync(
			path.join(folder, `part${part}.conf`),
			`(part${part}) {\n\theader X-Part ${part}\n\tencode gzip\n}\n`,
		);
		text += `import part${part}.conf\n`;
	}
	for (let site = 1; text.split('\n').length < 2600; site++) {
		text += `site${site}.example.com {
	use part${site % 20}
	root .
	@api path /api/* /v${site}/*
	when @api {
		reverse_proxy 10.0.0.${site % 250}:8080 {
			header_up X-Site ${site}
			lb_policy least_conn
		}
	} else {
		file_server
	}
	redir /old/* /new permanent
	header /static/* Cache-Control "max-age=3600"
	log {
		output stdout
	}
}

`;
	}
	writeFileSync(path.join(folder, 'Configfile'), text);
	return { folder, text };
}

/** Returns the processor time that a process has used, in milliseconds. */
function cpuMilliseconds(pid: number): number {
	const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
	// proc(5): utime and stime, in ticks of 10 ms.
	return (Number(fields[11]) + Number(fields[12])) * 10;
}

function quantile(times: readonly number[], share: number): number {
	const sorted = times.toSorted((a, b) => a - b);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

const latency = suite('language server: latency');

latency('on 2,600 lines with 20 imports', async () => {
	const { folder, text } = largeConfiguration();
	const slownessBefore = machineSlowness();
	const startedAt = performance.now();
	const editor = new Editor(folder);
	await editor.initialize();
	editor.open('Configfile', text);
	await editor.whenVersionsShown();
	const first = performance.now() - startedAt;
	const startTime = cpuMilliseconds(editor.pid);
	const keystrokes: number[] = [];
	const completions: number[] = [];
	const at = text.indexOf('header_up X-Site 60') + 'header_up X-Site 60'.length;
	let keystrokeTime = 0;
	for (let key = 0; key < KEYSTROKES; key++) {
		const usedBefore = cpuMilliseconds(editor.pid);
		const before = performance.now();
		const typed = key % 2 === 0;
		editor.edit('Configfile', at, at + (typed ? 0 : 1), typed ? String(key % 10) : '');
		await editor.whenVersionsShown();
		keystrokes.push(performance.now() - before);
		keystrokeTime += cpuMilliseconds(editor.pid) - usedBefore;
		if (key % 3 !== 0) continue;
		const asked = performance.now();
		const position = positionIn(editor.buffers.get('Configfile')!.text, text.indexOf('lb_policy least', at) + 10);
		await editor.request('textDocument/completion', { textDocument: { uri: editor.uri('Configfile') }, position });
		completions.push(performance.now() - asked);
	}
	const figures = {
		'start to first diagnostics': [first, 400, ELAPSED_FACTOR],
		'keystroke to diagnostics, median': [quantile(keystrokes, 0.5), 60, ELAPSED_FACTOR],
		'keystroke to diagnostics, 99 %': [quantile(keystrokes, 0.99), 150, ELAPSED_FACTOR],
		'completion, median': [quantile(completions, 0.5), 20, ELAPSED_FACTOR],
		'start to first diagnostics, processor time': [startTime, 800, 1],
		'keystroke to diagnostics, processor time, mean': [keystrokeTime / KEYSTROKES, 40, 1],
	} as const;
	const slowness = (slownessBefore + machineSlowness()) / 2;
	console.log(`  the machine takes ${slowness.toFixed(2)} times as long as the reference machine`);
	for (const [what, [measured, bound]] of Object.entries(figures))
		console.log(`  ${what}: ${measured.toFixed(1)} ms (${(measured / bound).toFixed(2)} of ${bound} ms)`);
	for (const [what, [measured, bound, slack]] of Object.entries(figures))
		assert.ok(measured <= bound * slack * slowness, `${what}: ${measured} ms`);
	assert.is(await editor.quit(), 0);
});

latency.after(endEditors);

latency.run();
