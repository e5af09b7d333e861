/** What the operating system knows of the process, under the names that every Prometheus client uses. */
import { readdirSync, readFileSync } from 'node:fs';
import { Counter, Gauge, type Registry } from 'prom-client';

/** Registers `process_*` families; each is read when scraped. Those that this platform cannot give are left out. */
export function registerProcessMetrics(registry: Registry): void {
	const registers = [registry];
	const cpu = new Counter({
		name: 'process_cpu_seconds_total',
		help: 'User and system CPU seconds of the process.',
		registers,
		collect() {
			const { user, system } = process.cpuUsage();
			cpu.reset();
			cpu.inc((user + system) / 1e6);
		},
	});
	new Gauge({
		name: 'process_resident_memory_bytes',
		help: 'Resident memory.',
		registers,
		collect() {
			this.set(process.memoryUsage.rss());
		},
	});
	new Gauge({
		name: 'process_start_time_seconds',
		help: 'Start of the process, seconds since the epoch.',
		registers,
	}).set(Math.round(Date.now() - process.uptime() * 1000) / 1000);
	const openFiles = countOpenFiles();
	if (openFiles === undefined) return;
	new Gauge({
		name: 'process_open_fds',
		help: 'Open file descriptors.',
		registers,
		collect() {
			const count = countOpenFiles();
			if (count !== undefined) this.set(count);
		},
	});
	const limit = fileLimit();
	if (limit !== undefined) {
		new Gauge({ name: 'process_max_fds', help: 'Most file descriptors allowed.', registers }).set(limit);
	}
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
