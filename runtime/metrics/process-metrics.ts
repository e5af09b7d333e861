/** Metrics that the operating system provides about the process, under the standard Prometheus names, and some of our own. */
import { readdirSync, readFileSync } from 'node:fs';
import type { PlainFamily } from './exposition.ts';
import { plainFamily } from './plain-family.ts';

/**
 * Returns the standard `process_*` families, each also under the name `svc_process_*`, and our own `svc_process_*` families.
 * Omits metrics that this platform does not provide.
 */
export function processFamilies(): PlainFamily[] {
	const startedAt = Math.round(Date.now() - process.uptime() * 1000) / 1000;
	const families = [
		...standardAndOwnFamilies(
			'process_cpu_seconds_total',
			'User and system CPU seconds of the process.',
			'counter',
			() => {
				const { user, system } = process.cpuUsage();
				return (user + system) / 1e6;
			},
		),
		...standardAndOwnFamilies('process_resident_memory_bytes', 'Resident memory.', 'gauge', () =>
			process.memoryUsage.rss(),
		),
		...standardAndOwnFamilies(
			'process_start_time_seconds',
			'Start of the process, seconds since the epoch.',
			'gauge',
			() => startedAt,
		),
		plainFamily(
			'svc_process_major_page_faults_total',
			'Major page faults: pages that had to be read from a disk.',
			'counter',
			() => process.resourceUsage().majorPageFault,
		),
		contextSwitchFamily(),
	];
	if (countOpenFiles() === undefined) return families;
	families.push(
		...standardAndOwnFamilies(
			'process_open_fds',
			'Open file descriptors.',
			'gauge',
			() => countOpenFiles() ?? Number.NaN,
		),
	);
	const maxOpenFiles = readFileLimit();
	if (maxOpenFiles !== undefined) {
		families.push(
			...standardAndOwnFamilies(
				'process_max_fds',
				'Maximum number of open file descriptors.',
				'gauge',
				() => maxOpenFiles,
			),
		);
	}
	return families;
}

/** Returns a metric under its standard name and under our own. It is read once per scrape, so that both show the same value. */
function standardAndOwnFamilies(
	name: string,
	help: string,
	type: 'counter' | 'gauge',
	read: () => number,
): PlainFamily[] {
	let lastValue = Number.NaN;
	const standardFamily = plainFamily(name, help, type, () => {
		lastValue = read();
		return lastValue;
	});
	return [standardFamily, plainFamily(`svc_${name}`, help, type, () => lastValue)];
}

function contextSwitchFamily(): PlainFamily {
	const voluntary = { kind: 'voluntary' };
	const involuntary = { kind: 'involuntary' };
	return {
		name: 'svc_process_context_switches_total',
		help: 'Context switches, voluntary and involuntary.',
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

function readFileLimit(): number | undefined {
	try {
		const match = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
		return match ? Number(match[1]) : undefined;
	} catch {
		return undefined;
	}
}
