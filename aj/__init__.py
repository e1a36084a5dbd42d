"""Submit and run ML jobs from one file. `from aj import Client` asks the daemon of this user.

The plan of the house, from the ground up. A room imports only rooms that stand above it in this list, and
these are strangers to each other: store and net; template and pack; backends; daemon, client and view.

base/  the ground: imports nothing of ours
    agents         Which coding agent calls, in which session of its own, and what that session is called
    clock          Time behind one object, so that hours can pass in a test without waiting
    crash          Named points at which a test may kill this very process, to prove what survives
    desktop        The desktop of this machine
    digest         SHA-256 of small things
    errors         Every error that `aj` raises on purpose, each with its exit code and, when there is one
    late           What is made, and its rooms imported, when it is first asked for
    noun           Dataclasses that cost a start next to nothing
    packs          Parts of the single-file program that are unpacked only when they are first needed
    paths          Where things are
    plain          Files that people write, read whole
    proc           The only room that starts other programs, and what can be asked about processes
    redact         Secrets out of text
    settings       Every environment variable that `aj` reads, read once into one frozen object
    text           Small work on words
    units          Sizes, durations and whole numbers

model/  nouns: frozen values without input, output or a clock
    bucket         Buckets as nouns
    catalogue      Instance types: the machines that a series of quota can be spent on
    claim          A claim: one replica of a deployment takes one queued job, and what became of that
    cloudjob       A job of a workspace as it is told here
    code           Code as a noun: which tree to take and by which rules, and the archive that came of it
    commandjob     A command job of Azure Machine Learning
    deployment     A deployment: long-running copies of one program on this machine that take jobs
    exits          Exit codes by which our own programs on a node end, when it is not the user's that failed
    finding        What a look at this machine found
    handle         A handle names one job at one place
    image          An image by its reference
    job            A JobSpec: everything a user asked for, typed, with nothing left to look up in a template
    json           The one name for a JSON value
    log            Log bytes as they travel
    money          Money in whole millionths of a US dollar, so that no sum drifts
    names          Names and ids: what a job is called, here and at each kind of place
    quota          Virtual clusters and what is left of them
    record         A journal record
    repository     The address of a repository
    sku            The SKU: what a machine must have, in one short word such as `2x80G8-A100-NvLink`
    spend          What is spent: hosts with their prices, caps on what may be spent
    state          The states of a job, and every move that is allowed between them, with who makes it
    step           What happens while a job is being submitted, told step by step to whoever listens
    tally          Totals over many jobs
    ticket         A ticket: one promised submission, from acceptance to its outcome
    watch          A watch: a job of which somebody wants to hear when it moves, and by which ways
    words          The words of the command line that a job runs
    workload       A Workload: the record of one job that our own engine drives, and the events of its life

wire/  the contract of the socket
    azure          What crosses the socket about Azure
    bucket         What crosses the socket about buckets, credentials and secrets
    codec          Nouns to JSON and back, strictly
    daemon         The daemon as others speak of it
    deployment     What crosses the socket about deployments
    errors         Errors as they cross the socket
    kube           What crosses the socket about clusters
    messages       What crosses the socket besides the nouns themselves
    paths          The routes of the socket as names
    resources      Resources of Azure as they cross the socket
    spend          What crosses the socket about spending
    version        Whether two sides fit
    watch          What crosses the socket about watches

store/  the door to the disk
    archives       Packed code on disk
    atomic         Whole files, or none
    buckets        Under which credentials a bucket of some name is known
    cache          Answers of remote services with their age
    changes        Several files of one folder changed together
    claims         Executions of targeted jobs that are over, one line each, in the job's folder
    config         Settings: of the project (`.azure_jobs/aj.toml`), of the user
    credentials    Credentials on disk
    deployments    Deployments on disk
    joblogs        Logs of jobs: what the processes of each start wrote, byte for byte, and when
    jobs           Jobs on disk: one folder each, with the record, what was asked for, the events
    journal        The journal: what became of every submission, one line each, never rewritten
    jsonl          History by the line
    keys           Every setting there is
    kubeconfig     A kubeconfig that gets one more cluster
    layout         The names of all files in the state directory, in one place
    lock           The only use of `filelock`
    prices         The price table of the user
    pulled         What the last pull or push of a project's templates left
    queue          The queue of one project in the hands of its owner
    runtime        The runtime folder
    secrets        Secrets on disk
    skills         A copy of a skill in the folder of a coding agent
    spend          Caps, and what jobs cost that are no longer on record
    tickets        Tickets on disk, for whoever looks
    toml_lines     Where a key stands in a TOML file
    traces         Traces: what was made on clusters for a submission and must not stay there for ever
    watches        Watches on disk, a file each

net/  the door to the network
    clouds         The clouds that are known
    credentials    Credential sources
    document       A JSON object that a service answered, read field by field
    git            Git repositories elsewhere, through the program `git`
    http           Requests and answers of the services we speak to, and what a transport promises about them
    keyring        Who this user is to a registry of images
    origin         Where an address leads
    pages          Lists that come page by page
    pool           The one connection pool of the daemon
    ports          A TCP port of this machine that nobody uses just now
    proxies        Which way out of this network
    refusal        An answer of 300 or more, as one of our errors
    registry       Registries of images
    retry          Asking again: a transport around another one that repeats questions, and never a change
    token          Tokens: taken from the credential source of this user, kept in memory alone
    uds            HTTP over a Unix socket

azure/  Azure, one verb a function
    accounts       Storage accounts
    arm            The Resource Manager
    asker          Who asks: what Azure told one person is never shown to another
    blobs          One container of blob storage, and the few requests by which a file comes into it, once
    blocks         A file into a container, once
    chosen         What the user's settings say to Azure
    clusters       Virtual clusters
    computes       Computes: the clusters and machines of one workspace
    datastores     Datastores: the blob containers that a workspace knows by a name of its own
    delivery       Code into a workspace
    endings        How a job ends by our hand
    environments   Environments: the images that a workspace knows by name and version
    fan            Many questions at once
    gauge          Bytes of an upload as they leave, counted
    graph          Resource Graph: one question over many subscriptions
    hardware       What a line of text says of a machine
    history        Run history: what the data plane of a workspace knows of a run: its log files, its error
    identity       Identities: who is signed in here, and the user-assigned identities that a job may run as
    images         Images of the service's own
    instances      Instance types: the catalogue of what a virtual cluster's machines are, region by region
    jobs           Jobs of a workspace
    leftovers      Old code in the container of a workspace
    line           The line to a storage account
    logs           Log files of a run
    memory         Small findings kept for later
    office         What every service that puts jobs into a workspace does alike
    quota          Usages: how much of each machine family a subscription has in use in a region
    sessions       Sessions: how this process speaks to the clouds of its users
    signatures     Signed addresses of blobs
    states         What the service's words for the state of a job mean to us
    submission     From a planned job to a job of a workspace
    subscriptions  Subscriptions: those this user sees and may use
    supply         What virtual clusters have to offer, live
    times          Moments as Azure writes them
    workplace      Which workspace a submission goes to
    workspaces     Workspaces: one by its coordinates, many by the resource graph

kube/  Kubernetes, one verb a function
    amounts        Amounts as a cluster writes them
    client         One cluster as one user
    config         Kubeconfig files
    credentials    Who we are to a cluster
    endings        How a job ends by our hand
    errors         What a cluster answers when it does not do what it was asked, as one of our errors
    events         Events of a cluster
    exec           Programs run inside pods
    jobs           Jobs of Volcano
    line           The line to one cluster
    obstacles      What keeps a gang from running
    podlogs        What a pod printed, read on from where the last look ended
    pods           Pods: where each member of a gang stands, why it does not run or no longer does
    queues         Queues of Volcano
    resources      The kinds of objects that `aj` asks a cluster about, and where each is found
    secrets        Secrets: made before the job that needs them, owned by it from then on
    times          Moments as a cluster writes them

bucket/  object storage to folders and back
    azure          Buckets that are containers of Azure Blob Storage
    checkpoint     Checkpoints: a folder of a job into its prefix of a bucket and back
    digest         The hash of a file by which its bytes are stored
    door           The way into a bucket
    fetch          One object to one file
    folder         Buckets that are folders of this machine, or of whatever it has mounted
    manifest       The manifest of a checkpoint
    mirror         Folders into buckets and back, file by file
    prices         What it costs to bring data out of a storage, at list prices
    scan           A folder of a job as it stands
    scope          One prefix of a bucket as if it were the whole of it
    storage        What every kind of storage promises
    transfer       Many objects at once

template/  YAML to a JobSpec
    buckets        The section `storage_buckets` of a template
    build          A template and a command line to one JobSpec, with nothing left to look up
    check          Everything that can be found wrong with a template from its files alone, all of it at once
    dump           Plain values to YAML text that readers of version 1.1 and of version 1.2 take for the same value
    edit           One value of a template's text set anew, with everything around it, comments too
    env            Environment variables of the command line
    exchange       What a pull or a push would change
    issue          One finding about a template
    load           Which files make up a template
    merge          Two layers of a template to one
    origin         Where each value of a merged template was written, by what rule it won, and what it hides
    reader         Typed values out of one mapping of a template, each fault noted with its place
    schema         The keys that a template may have and what kind each value is, whatever the service
    script         A file that the command line names and that does not travel
    sections       Sections of a template that several services read alike
    service        What a service tells the shared build about a template, and nothing more
    shape          How many nodes and processes, and which SKU
    shared         What a project shares with others through a repository, and what never leaves it
    source         One template file as it stands on the disk
    tree           Values of a template that remember where they were written, and what a merge did to them
    venv           The virtual environment of the invocation directory
    yaml           One YAML file to a tree of values that know their places

pack/  a code tree to an archive
    advice         What a user should hear about ignore patterns
    archive        A code tree to an archive that is named by what is in it, and kept
    cache          What was learnt of a tree when it was last read
    content        Reading the selected files, so that each is taken whole and as it was at one moment
    deflate        Compression in blocks and threads
    digest         The digest of code
    explain        Why a path is in the code or not
    glob           One ignore pattern, read byte for byte as git reads it
    ignore         Which paths stay out
    links          Which links may travel
    node           The two programs that go with code to where it runs
    offence        What keeps a tree from being packed
    scripts        The project's scripts
    selection      A selection: the entries of a tree that are code, in byte order of their paths
    sources        Where the ignore rules of a tree come from
    ssh            Files of `~/.ssh` that a template lists
    tar            The tar format, as far as code needs it
    unpack         An archive to a folder
    walk           The walk through a tree that selects its code

backend/  the places that run jobs, a folder each
    protocol       What every place that runs jobs promises
    registry       The services that `aj` knows, by name
    aml/           backend foresight options payload target
    amlt/          backend commands foresight options output payload
    local/         attempt containers driver foresight limits lines machine mounts options podman ranks
                   replica spawn states strays supervisor
    sing/          backend foresight match options payload target
    volcano/       backend blob courier fields foresight gang known names options payload pins pods porter
                   program sas states tasks telling transfer variables volume

engine/  what the product does; only inside the daemon
    account        What was spent: hosts of jobs that are in memory, of those that are over
    artifacts      What a job reads from buckets and leaves in them, as the life of a job sees it
    attempt        The one try to submit one ticket
    buckets        The buckets of jobs
    claims         Who gets which job of a deployment, and how each ends
    cloud          Azure as the daemon asks it
    cloudjobs      Jobs of workspaces
    cloudlogs      Log files of runs in workspaces
    clusters       Virtual clusters with their quota and their machines
    compose        The engine of the product, put together
    crew           The replicas of all deployments
    deployments    Deployments: made, shown, changed and removed; jobs are sent to them
    desk           One project's queue in the hands of this daemon
    drive          One job on its way from queued to its end, in a thread of its own
    engine         The engine: everything the daemon can be asked for, in one place
    gate           Whether a job may have a host now, by what that costs
    hub            Events on their way out
    identity       Who is signed in
    images         Images of the service's own, by every name they have
    janitor        What happens to a job after its end
    jobs           The jobs that our own engine drives
    kept           Answers that are kept
    kube           Clusters as this house uses them
    kubecare       What is done about one thing that was made on a cluster
    kubejobs       Jobs of Volcano as jobs of other places are told
    kubelooks      Clusters looked at by hand
    lifecycle      The one door through which a job changes its state
    means          What a submission needs of the house
    native         What the services of Azure need of this house
    notify         Notices on their way out of this machine's memory
    outbox         Notices on their way out, apart from whoever looks
    pins           What the tag of an image means at this moment
    programs       Programs that run for a submission
    quota          Quota: what is left of virtual clusters, of the machine families of subscriptions
    reconcile      Finding out what became of a submission whose outcome is unknown
    records        What is kept of a submission
    recover        A job that has lost its host
    resources      Resources of Azure, read for whoever asks
    retry          A failed submission once more
    scheduler      Which queued job starts next, and why the others wait
    services       Where the names of services lead
    sight          Where a watched job stands, whoever runs it
    skus           Machines that a job can ask for
    spend          Spending: the prices, the caps, what may start because of them
    starter        Turning the plan of who starts into moves
    steps          What happens to a submission while it is carried out, on its way to whoever follows it
    storage        Buckets as people ask for them
    submit         Accepting a submission for good
    tokens         The word by which a replica's program says who it is
    upkeep         Upkeep of jobs on clusters
    visit          One question to Azure
    watches        Watches: jobs of which somebody wants to hear when they move, whoever runs them
    worker         The loop that carries queued submissions out, one at a time, oldest first

daemon/  the started process
    call           One decoded call, as a route sees it
    engine         The engine as the daemon sees it, as one list
    front          The strict front of the socket
    lifecycle      When the daemon leaves
    log            The daemon's log
    replay         Changes that were asked for already
    router         Method and path to the one function that answers, and every error to its envelope
    serve          The started process
    server         The socket's server
    stream         Answers that take their time

daemon/routes/  its routes, one room a noun
    admin          Routes of the daemon itself
    buckets        Routes of buckets, of transfers into them and out of them, of credentials and of secrets
    cloudjobs      Routes of the jobs of workspaces and clusters
    code           Routes of packed code
    deployments    Routes of deployments
    events         The route of events
    inventory      Routes of what Azure has for this user
    jobs           Routes of the jobs that the engine drives
    journal        The route of the journal
    k8s            Routes of clusters looked at by hand
    logs           The route of logs
    queue          Routes of the queue
    spend          Routes of spending
    submissions    Routes of submissions
    watches        Routes of watches
    workload       Routes that the replicas of a deployment ask, each with its token

client/  the caller's side of the socket
    api            The client of Python programs
    asynchronous   The same client for programs of asyncio
    buckets        Buckets, what opens them, and secrets, as a caller asks for them
    checkup        A look at what `aj` itself stands on here
    client         The caller's side in one object
    cloudjobs      Jobs of workspaces
    cloudlogs      Log files of jobs of workspaces as one stream of bytes
    code           Packed code that the daemon keeps
    daemon         The daemon as a noun
    deployments    Deployments: list, show, make, change, remove; send jobs to them
    errors         What a caller of the Python client may want to catch by name
    events         Events: everything that changes at the daemon, as it changes
    inventory      What Azure has for this user
    job            One job in the hands of a Python program
    jobs           Jobs that the daemon drives
    k8s            Clusters looked at by hand
    launch         Find the daemon, or start it
    line           One conversation with the daemon
    logs           Logs of jobs on this machine, read from disk
    outfit         A look at what this machine offers besides `aj`
    presence       Who stands at the socket
    queue          The queue: tickets of this project or of all, one of them, and what can be done to it
    request        What the arguments of a Python program ask for
    spend          Spending: what is spent, caps on it, and what everything has cost
    submissions    Submissions: promise one to the daemon, follow it to its outcome
    watches        Watches: jobs of which somebody wants to hear when they move

view/  values to lines
    action         What an action did to each thing it was asked about
    auth           Who is signed in, and for which scopes there is a token
    bucket         Buckets, what is in them, and what a transfer brought over
    cloudjob       Jobs of workspaces as rows, as a status, and counted
    code           The code that would travel
    config         Settings as rows
    credential     Credentials and secrets as rows
    daemon         The daemon as a person sees it
    deployment     Deployments as rows, and one of them with its replicas and the jobs that they hold
    docs           Pages of documentation, and the list of them
    doctor         What a look at this machine found, as rows
    document       What a command answers, once, for every format
    exchange       Shared files that were pulled or pushed, and how a repository differs from a project
    experiment     Experiments of a workspace as rows, and one of them with its newest jobs
    help           A page of help as text and as JSON
    image          Images of the service's own as rows
    init           A new project: what was written, and what to type next
    job            Jobs of this machine as rows, as records, and as the lines of `wait`
    journal        The journal as rows
    k8s            Clusters as rows
    logs           Lines of a job's log as JSON
    queue          Tickets as rows
    quota          Quota as rows: what is used and what is left, for everybody and for this user
    resource       Datastores, environments, storage accounts and identities as rows
    schema         The JSON schemas of everything that commands print, written beside the rows they describe
    scope          What a list is limited to, and how the session of a submission is written
    screen         The terminal: the only room that writes to stdout or stderr, or asks a question
    skill          Copies of the skill as rows
    sku            Types of machines as rows, each with the SKU that asks for it
    spend          Spending as rows
    submission     A submission: what was sent, queued or only rendered, and what to type next
    table          Rows as text: fitted and coloured for a terminal, tabs and full values for a pipe
    template       Templates as rows, as resolved YAML, and with the origin of every value
    times          Moments for people
    told           When something was told, and what could not be read
    version        The version as a line and as JSON
    watch          Watches as rows, and what moved as lines
    workspace      Workspaces as rows, and one of them with what it says of itself

cli/  one room a command: `aj queue list` is `cli/queue/list.py`

main  the door: the words of the command line in, an exit code out
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` for it would cost a part of every start
if TYPE_CHECKING:
    from aj.base.errors import (
        AjError,
        AuthError,
        ConfigError,
        DaemonError,
        JobFailed,
        NotFound,
        OutcomeUnknown,
        Refused,
        RemoteError,
        TemplateError,
        TimedOut,
        Unavailable,
        UserError,
    )
    from aj.client.api import Client
    from aj.client.asynchronous import AsyncClient, AsyncJob
    from aj.client.errors import (
        JobSubmissionChanged,
        JobSubmissionExpired,
        JobSubmissionTerminated,
        JobSubmissionUncertain,
        WorkloadWaitTimeout,
    )
    from aj.client.job import Job, Ran, Status
    from aj.model.state import JobState

__all__ = [
    "AjError",
    "AsyncClient",
    "AsyncJob",
    "AuthError",
    "Client",
    "ConfigError",
    "DaemonError",
    "Job",
    "JobFailed",
    "JobState",
    "JobSubmissionChanged",
    "JobSubmissionExpired",
    "JobSubmissionTerminated",
    "JobSubmissionUncertain",
    "NotFound",
    "OutcomeUnknown",
    "Ran",
    "Refused",
    "RemoteError",
    "Status",
    "TemplateError",
    "TimedOut",
    "Unavailable",
    "UserError",
    "WorkloadWaitTimeout",
]
_ROOMS = {
    "Client": "client.api",
    **dict.fromkeys(("AsyncClient", "AsyncJob"), "client.asynchronous"),
    **dict.fromkeys(("Job", "Ran", "Status"), "client.job"),
    "JobState": "model.state",
    "WorkloadWaitTimeout": "client.errors",
    **dict.fromkeys((name for name in __all__ if name.startswith("JobSubmission")), "client.errors"),
}


def __getattr__(name: str) -> object:
    """Import a name when it is asked for: a command that needs none does not pay for it."""
    if name not in __all__:
        raise AttributeError(f"module 'aj' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"aj.{_ROOMS.get(name, 'base.errors')}"), name)
