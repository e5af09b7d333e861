/**
 * Builds every site once with fakes, so that mistakes which only code generation can detect are reported before the
 * configuration is applied.
 */
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document, Site } from '../document/document.ts';
import type { LeaseKinds, Leases } from '../exchange/leases.ts';
import { BuildError } from '../modules/contract/compile-context.ts';
import { readAccountFile } from '../modules/directives/basic-auth/account-file.ts';
import { readTlsMaterial } from '../modules/directives/reverse-proxy/transports/tls-material.ts';
import type { Reader } from '../source/reader.ts';
import type { RecordedRead, RecordingReader } from '../source/recording-reader.ts';
import { type BuildEnvironment, buildSite } from './build-site.ts';
import { fakeLeases } from './context/fake-leases.ts';
import { UNKNOWN_HOST_FACTS } from './placeholders/index.ts';
import type { HostFacts } from './placeholders/placeholder.ts';
import { checkServers } from './plan/check-servers.ts';

/**
 * The files that each site read when it was built, for sites that have been built successfully with the same settings, upstreams
 * and routes.
 */
export type ReadsBySite = WeakMap<Site, readonly RecordedRead[]>;

/** The recorded reads of a site that reads no files. Most sites share this list. */
const NO_READS: readonly RecordedRead[] = [];

/**
 * Reports mistakes that only building a site detects, each at its pointer: the first mistake in each step and in each error route
 * of a site. Sites in `readsBySite` are not built again unless a file that they read has changed; sites that can be built are added.
 * @param reader Reads the files that upstream pools name.
 * @param facts Facts about the machine that will serve the document. If omitted, values from its environment are not checked.
 */
export function checkBuild(
	document: Document,
	report: Report,
	readsBySite: ReadsBySite,
	reader: RecordingReader,
	facts?: HostFacts,
): void {
	checkServers(document, report);
	const environment: BuildEnvironment = {
		settings: document.settings ?? {},
		upstreams: document.upstreams ?? {},
		routes: document.routes ?? {},
		leases: checkingLeases(reader, facts !== undefined),
		facts: facts ?? UNKNOWN_HOST_FACTS,
	};
	(document.sites ?? []).forEach((site, index) => {
		const recordedReads = readsBySite.get(site);
		if (recordedReads && reader.confirms(recordedReads)) return;
		const newReads = reader.startRecord();
		const buildError = tryBuild(site, index, environment);
		reader.endRecord();
		if (buildError === undefined) {
			readsBySite.set(site, newReads.length > 0 ? newReads : NO_READS);
			return;
		}
		let isReported = false;
		const { errors, ...otherFields } = site;
		site.pipeline.forEach((step, stepIndex) => {
			const error = tryBuild({ ...otherFields, pipeline: [step] }, index, environment);
			if (!error) return;
			isReported = true;
			reportAt(
				error,
				error.pointer.replace(`/sites/${index}/pipeline/0`, `/sites/${index}/pipeline/${stepIndex}`),
				report,
			);
		});
		errors?.forEach((route, routeIndex) => {
			const error = tryBuild({ ...otherFields, pipeline: [], errors: [route] }, index, environment);
			if (!error) return;
			isReported = true;
			reportAt(
				error,
				error.pointer.replace(`/sites/${index}/errors/0`, `/sites/${index}/errors/${routeIndex}`),
				report,
			);
		});
		if (!isReported) reportAt(buildError, buildError.pointer, report);
	});
}

function tryBuild(site: Site, index: number, environment: BuildEnvironment): BuildError | undefined {
	try {
		buildSite(site, index, environment);
		return undefined;
	} catch (error) {
		if (error instanceof BuildError) return error;
		const message = error instanceof Error ? error.message : String(error);
		return new BuildError('document/cannot-be-built', `/sites/${index}`, message);
	}
}

function reportAt(error: BuildError, pointer: string, report: Report): void {
	const hint = error.hint === undefined ? {} : { hint: error.hint };
	report({ code: error.code, severity: 'error', pointer, message: error.message, ...hint });
}

/**
 * Returns fake leases that read files through the compiler's reader. They throw MaterialError for unusable certificates, and
 * AccountFileError for unusable account files. `knowsEnvironment` is true if values from the environment are known and must be
 * checked.
 */
function checkingLeases(reader: Reader, knowsEnvironment: boolean): Leases {
	return {
		lease(kind, settings) {
			if (kind === 'password_verifier') {
				const verifier: LeaseKinds['password_verifier']['lease'] = {
					...fakeLeases.lease('password_verifier', {}),
					isLive: knowsEnvironment,
				};
				return verifier as LeaseKinds[typeof kind]['lease'];
			}
			if (kind === 'account_file') {
				const { path } = settings as LeaseKinds['account_file']['settings'];
				const accounts = readAccountFile(path, reader);
				return { accounts: () => accounts } as LeaseKinds[typeof kind]['lease'];
			}
			if (kind === 'upstreams') checkPool(settings as LeaseKinds['upstreams']['settings'], reader);
			return fakeLeases.lease(kind, settings);
		},
	};
}

function checkPool({ transport }: LeaseKinds['upstreams']['settings'], reader: Reader): void {
	if (transport?.type === 'http' && transport.tls) readTlsMaterial(transport.tls, path => reader.readBytes(path));
}
