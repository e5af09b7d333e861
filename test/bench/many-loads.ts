/**
 * Reloads a 100-site configuration many times. Resident memory after the last reload must be within 15 % of the memory after
 * a tenth of the reloads, and no descriptor, timer or thread may leak.
 *
 * Usage: node test/bench/many-loads.ts [--loads 2000]
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { freePorts, serve, temporaryFolder } from '../harness.ts';

export interface ProcessResources {
	readonly residentBytes: number;
	readonly descriptors: number;
	readonly threads: number;
}

/** Reads the resources of a process from /proc. */
export function readProcessResources(pid: number): ProcessResources {
	return {
		residentBytes: Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024,
		descriptors: readdirSync(`/proc/${pid}/fd`).length,
		threads: readdirSync(`/proc/${pid}/task`).length,
	};
}

function hundredSites(port: number, adminPort: number, number: number): string {
	const sites = Array.from(
		{ length: 100 },
		(_, index) => `http://site-${index}.example:${port} {
	header X-Site ${index}
	@old path /old /old/*
	redir @old /new
	handle_path /api/* {
		reverse_proxy 127.0.0.1:${9000 + (index % 10)}
	}
	respond "site ${index} of load ${number}"
}
`,
	);
	return `{\n\tadmin 127.0.0.1:${adminPort}\n\tthreads 2\n}\n${sites.join('')}`;
}

/**
 * Reloads a changed 100-site configuration repeatedly. Returns the resources held after a tenth of the reloads and after
 * all of them.
 */
export async function reloadRepeatedly(loads: number): Promise<{ early: ProcessResources; late: ProcessResources }> {
	const [port, adminPort] = (await freePorts(2)) as [number, number];
	const file = path.join(temporaryFolder(), 'Configfile');
	writeFileSync(file, hundredSites(port, adminPort, 0));
	const server = await serve([file], port);
	// The launcher uses exec, so the child is the server itself.
	const pid = server.child.pid!;
	let early: ProcessResources | undefined;
	try {
		for (let number = 1; number <= loads; number++) {
			const response = await fetch(`http://127.0.0.1:${adminPort}/load`, {
				method: 'POST',
				headers: { 'Content-Type': 'text/configfile' },
				body: hundredSites(port, adminPort, number),
			});
			const text = await response.text();
			if (response.status !== 200) throw new Error(`load ${number}: ${response.status} ${text}`);
			const page = await fetch(`http://127.0.0.1:${port}/`, { headers: { Connection: 'close' } });
			await page.text();
			if (number === Math.ceil(loads / 10)) early = readProcessResources(pid);
		}
		await new Promise(resolve => setTimeout(resolve, 500));
		return { early: early!, late: readProcessResources(pid) };
	} finally {
		await server.stop();
	}
}

if (import.meta.main) {
	const { values } = parseArgs({ options: { loads: { type: 'string', default: '2000' } } });
	const { early, late } = await reloadRepeatedly(Number(values.loads));
	const growth = late.residentBytes / early.residentBytes - 1;
	const show = (at: ProcessResources): string =>
		`${(at.residentBytes / 1048576).toFixed(0)} MiB resident, ${at.descriptors} descriptors, ${at.threads} threads`;
	console.log(`after ${Math.ceil(Number(values.loads) / 10)} loads: ${show(early)}`);
	console.log(`after ${values.loads} loads: ${show(late)}  (memory ${(growth * 100).toFixed(1)} %)`);
	process.exitCode = growth > 0.15 || late.descriptors > early.descriptors || late.threads > early.threads ? 1 : 0;
}
