/** What the operating system knows of the process, under the names that every Prometheus client uses, and a little more. */
import { readdirSync, readFileSync } from 'node:fs';
import type { PlainFamily } from './exposition.ts';
import { plainFamily } from './plain-family.ts';

/**
 * The families `process_*`, each under the name `svc_process_*` too, and `svc_process_*` of our own. Those that this platform
 * cannot give are left out.
 */
export function processFamilies(): PlainFamily[] {
	const startedAt = Math.round(Date.now() - process.uptime() * 1000) / 1000;
	const families = [
		...twice('process_cpu_seconds_total', 'User and system CPU seconds of the process.', 'counter', () => {
			const { user, system } = process.cpuUsage();
			return (user + system) / 1e6;
		}),
		...twice('process_resident_memory_bytes', 'Resident memory.', 'gauge', () => process.memoryUsage.rss()),
		...twice('process_start_time_seconds', 'Start of the process, seconds since the epoch.', 'gauge', () => startedAt),
		plainFamily(
			'svc_process_major_page_faults_total',
			'Pages that had to be read from a disk.',
			'counter',
			() => process.resourceUsage().majorPageFault,
		),
		switches(),
	];
	if (countOpenFiles() === undefined) return families;
	families.push(...twice('process_open_fds', 'Open file descriptors.', 'gauge', () => countOpenFiles() ?? Number.NaN));
	const limit = fileLimit();
	if (limit !== undefined) {
		families.push(...twice('process_max_fds', 'Most file descriptors allowed.', 'gauge', () => limit));
	}
	return families;
}

/** A family under its standard name and under ours, read once a scrape: both tell the same. */
function twice(name: string, help: string, type: 'counter' | 'gauge', read: () => number): PlainFamily[] {
	let value = Number.NaN;
	const standard = plainFamily(name, help, type, () => {
		value = read();
		return value;
	});
	return [standard, plainFamily(`svc_${name}`, help, type, () => value)];
}

function switches(): PlainFamily {
	const voluntary = { kind: 'voluntary' };
	const involuntary = { kind: 'involuntary' };
	return {
		name: 'svc_process_context_switches_total',
		help: 'Times that a thread gave its CPU away, or had it taken.',
		type: 'counter',
		samples: () => {
			const usage = process.resourceUsage();
			return [
				{ labels: voluntary, value: usage.voluntaryContextSwitches },
				{ labels: involuntary, value: usage.involuntaryContextSwitches },
			];
		},
	};
}

function countOpenFiles(): number | undefined {
	try {
		return readdirSync('/proc/self/fd').length;
	} catch {
		return undefined;
	}
}

function fileLimit(): number | undefined {
	try {
		const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
		return found ? Number(found[1]) : undefined;
	} catch {
		return undefined;
	}
}
