/** Preflight check of log outputs. */
import type { Document, SiteLog } from '../../compiler/document/document.ts';
import { escapePointer } from '../../compiler/document/json-pointer.ts';
import { systemReason } from '../files/system-reason.ts';
import { logFileProblem } from '../logs/file-writer.ts';
import { compileLogFormat } from '../logs/log-format.ts';
import { LogOutputError, outputLocation } from '../logs/log-sinks.ts';
import { type ExpandText, machineText } from '../logs/machine-text.ts';
import { hostFacts } from '../threads/host-facts.ts';
import type { PreflightFinding, TargetMachine } from './finding.ts';

/** Returns what would prevent log outputs from being opened. Does not contact network collectors. */
export function logFindings({ settings = {}, sites = [] }: Document, machine: TargetMachine): PreflightFinding[] {
	const expand = machineText(hostFacts(machine.workingDirectory, machine.environment));
	const findings: PreflightFinding[] = [];
	const checkLog = (log: SiteLog, pointer: string): void => {
		const finding = logFinding(log, machine, expand);
		if (finding) findings.push({ ...finding, pointer });
	};
	for (const [name, log] of Object.entries(settings.logs ?? {})) checkLog(log, `/settings/logs/${escapePointer(name)}`);
	for (const [siteIndex, { logs = [] }] of sites.entries()) {
		for (const [logIndex, log] of logs.entries()) checkLog(log, `/sites/${siteIndex}/logs/${logIndex}`);
	}
	return findings;
}

function logFinding(
	{ output, format }: SiteLog,
	{ workingDirectory }: TargetMachine,
	expand: ExpandText,
): PreflightFinding | undefined {
	try {
		compileLogFormat(format ?? { encoder: 'default' }, 'json', expand);
		const location = output && outputLocation(output, expand);
		if (!location || !('file' in location)) return undefined;
		const code = logFileProblem(location.file, workingDirectory);
		if (code === undefined) return undefined;
		const message = `The log file ${location.file} cannot be opened: ${systemReason(code)}.`;
		if (code !== 'EACCES') return { code: 'log/output', severity: 'error', message };
		// Reported only as a warning, because the server may run as a different user.
		const hint = 'The current user cannot write there. The user that the server runs as must be able to.';
		return { code: 'log/output', severity: 'warning', message, hint };
	} catch (error) {
		const { message } = error as Error;
		return { code: error instanceof LogOutputError ? error.code : 'log/unknown-format', severity: 'error', message };
	}
}
