#!/usr/bin/env bash
# The code of a pod from blob storage: by azcopy, which is fetched for it, else by what the image has for downloads.
#
# Reads    AJ_CODE_URL_FILE (a file with a signed address; it is a secret), or AJ_CODE_URL (an address, for an
#          identity of the pod); AJ_CODE_RETRIES (5), AJ_CODE_PAUSE (seconds, 2: the first pause between two tries),
#          AJ_AZCOPY (lines: machine, SHA-256, address), AJ_AZCOPY_PROGRAM (lines: machine, SHA-256 of a copy that the
#          image may bring), AJ_ID; aj_own (a folder that nobody else can enter)
# Ends     112 it cannot be downloaded, 116 azcopy has another SHA-256, 117 there is nothing to download with
#
# The signed address is read anew for each try, so that a renewed one counts. Of the programs here only azcopy takes
# it as a word, which shows in the list of processes of this pod alone; the others read it from their input.
# shellcheck disable=SC2154 # the first part to run sets what all of them use

aj_blob_download() { # FILE
  local aj_try aj_tries=${AJ_CODE_RETRIES:-5} aj_wait=${AJ_CODE_PAUSE:-2} aj_azcopy='' aj_client=''
  aj_find_client
  aj_find_azcopy
  if [[ -z $aj_azcopy ]]; then
    [[ -n ${AJ_CODE_URL_FILE-} ]] || aj_die 117 'an identity needs azcopy, and it could not be had'
    [[ -n $aj_client ]] || aj_die 117 'the code cannot be downloaded: the image has none of curl, wget, python3'
    aj_say "azcopy could not be had: $aj_client downloads the code"
  fi
  for ((aj_try = 0; ; aj_try++)); do
    aj_download "$1" && return
    ((aj_try < aj_tries)) || aj_die 112 "the code could not be downloaded in $((aj_try + 1)) tries"
    aj_say "the download is tried again in $aj_wait s"
    sleep "$aj_wait"
    aj_wait=$((aj_wait * 2 < 60 ? aj_wait * 2 : 60))
  done
}

aj_download() { # FILE
  local aj_url aj_words=$aj_own/download.words
  # The last try may have brought all of it, and broken only then: not every server can say so.
  [[ ! -s $1 ]] || ! aj_is_sum "$1" "${AJ_CODE_ARCHIVE_SHA256-}" || return 0
  if [[ -n ${AJ_CODE_URL-} ]]; then
    aj_url=$AJ_CODE_URL
  else
    aj_url=$(cat -- "$AJ_CODE_URL_FILE") || aj_die 112 "the address of the code in $AJ_CODE_URL_FILE cannot be read"
  fi
  if [[ -n $aj_azcopy ]]; then
    aj_by_azcopy "$aj_url" "$1" >"$aj_words" 2>&1 && return
  else
    "aj_by_$aj_client" "$aj_url" "$1" >"$aj_words" 2>&1 && return
    ! grep -qE '\b416\b' "$aj_words" || return 0 # all of it is there; its sum is looked at next
  fi
  if grep -qE '\b40[13]\b|AuthenticationFailed|AuthorizationFailure' "$aj_words"; then
    aj_say "SAS expired or no right: aj k8s refresh-sas ${AJ_ID-}"
  else
    aj_say "the code could not be downloaded: $(aj_last_words "$aj_words" "$aj_url")"
  fi
  return 1
}

aj_last_words() { # FILE [SECRET…]: the end of what a program said, in one line and without what is secret
  local aj_text aj_secret aj_sign='^(.*[?&]sig=)[^*&" ]+(.*)$'
  aj_text=$(tail -n 5 -- "$1" 2>/dev/null | tr -d '\r' | tr '\n' ' ')
  for aj_secret in "${@:2}"; do
    [[ -z $aj_secret ]] || aj_text=${aj_text//"$aj_secret"/***}
    aj_secret=${aj_secret#*sig=}
    aj_secret=${aj_secret%%&*}
    [[ ${#aj_secret} -lt 8 ]] || aj_text=${aj_text//"$aj_secret"/***}
  done
  while [[ $aj_text =~ $aj_sign ]]; do aj_text="${BASH_REMATCH[1]}***${BASH_REMATCH[2]}"; done
  aj_text=${aj_text% }
  ((${#aj_text} <= 600)) || aj_text=${aj_text: -600}
  printf '%s' "$aj_text"
}

# Azcopy

aj_find_azcopy() { # sets aj_azcopy; empty when it cannot be had
  if [[ -n ${AJ_AZCOPY_PROGRAM-} ]]; then
    aj_azcopy=$(type -P azcopy) || { aj_say 'azcopy of the image was asked for, and it has none'; return; }
    aj_of_machine "$AJ_AZCOPY_PROGRAM" || { aj_azcopy=''; return; }
    aj_is_sum "$aj_azcopy" "$aj_sum" || aj_die 116 "azcopy of the image does not have the SHA-256 $aj_sum"
    return
  fi
  if [[ -z $aj_client ]] || ! aj_of_machine "${AJ_AZCOPY-}"; then
    return
  fi
  local aj_bin=$aj_own/azcopy aj_try aj_pause=${AJ_CODE_PAUSE:-2}
  mkdir -m 700 "$aj_bin" || aj_die 110 "the private folder $aj_bin cannot be made"
  for ((aj_try = 0; ; aj_try++)); do
    aj_fetch "$aj_url" "$aj_bin/fetched" && break
    if ((aj_try >= ${AJ_CODE_RETRIES:-5})); then
      aj_say "azcopy could not be fetched in $((aj_try + 1)) tries: $(aj_last_words "$aj_own/fetch.words")"
      return
    fi
    sleep "$aj_pause"
    aj_pause=$((aj_pause * 2 < 60 ? aj_pause * 2 : 60))
  done
  aj_is_sum "$aj_bin/fetched" "$aj_sum" || aj_die 116 "azcopy from $aj_url does not have the SHA-256 $aj_sum"
  aj_unpack_azcopy "$aj_bin"
}

aj_unpack_azcopy() { # FOLDER with the file that was fetched: an archive with the program somewhere in it, or itself
  local aj_member aj_found=$1/fetched
  if tar -tzf "$1/fetched" >"$1/members" 2>/dev/null; then
    aj_member=$(grep -m 1 -E '(^|/)azcopy[^/.]*$' "$1/members")
    if [[ -z $aj_member ]] || ! tar -xzOf "$1/fetched" "$aj_member" >"$1/azcopy" 2>/dev/null; then
      aj_say 'no azcopy was found in what was fetched for it'
      return
    fi
    aj_found=$1/azcopy
  fi
  chmod 700 "$aj_found"
  if "$aj_found" --version >"$aj_own/fetch.words" 2>&1 </dev/null; then
    aj_azcopy=$aj_found
  else
    aj_say "azcopy does not run here: $(aj_last_words "$aj_own/fetch.words")"
  fi
}

aj_by_azcopy() { # ADDRESS FILE
  export AZCOPY_LOG_LOCATION=$aj_own/azcopy-logs AZCOPY_JOB_PLAN_LOCATION=$aj_own/azcopy-plans
  if [[ -n ${AJ_CODE_URL-} && -z ${AZCOPY_AUTO_LOGIN_TYPE-} ]]; then
    export AZCOPY_AUTO_LOGIN_TYPE=MSI
    [[ -z ${AZURE_FEDERATED_TOKEN_FILE-} ]] || AZCOPY_AUTO_LOGIN_TYPE=WORKLOAD
  fi
  "$aj_azcopy" copy "$1" "$2" --from-to=BlobLocal --overwrite=true --check-length=true --skip-version-check </dev/null
}

# Other programs

aj_find_client() { # sets aj_client
  if type -P curl >/dev/null; then
    aj_client=curl
  elif type -P wget >/dev/null && wget --version 2>/dev/null | grep -q GNU; then
    aj_client=wget # the small one of busybox cannot read an address from its input
  elif type -P python3 >/dev/null; then
    aj_client=python3
  fi
}

aj_fetch() { # ADDRESS FILE: what is no secret; false when it did not come
  "aj_by_$aj_client" "$1" "$2" >"$aj_own/fetch.words" 2>&1
}

# Each of them goes on behind what is there already, gives up after a minute without a byte, and says `416` when
# there is nothing behind it.
aj_by_curl() { # ADDRESS FILE
  local aj_code
  printf 'url = "%s"\n' "$1" |
    curl --config - --fail --silent --show-error --globoff --continue-at - --connect-timeout 30 --speed-limit 1 \
      --speed-time 60 --output "$2"
  aj_code=$?
  ((aj_code != 33)) || rm -f "$2" # such a server cannot go on: the next try begins anew
  return "$aj_code"
}

aj_by_wget() { # ADDRESS FILE
  printf '%s\n' "$1" |
    wget --input-file=- --output-document="$2" --continue --tries=1 --timeout=60 --max-redirect=0 --no-verbose
}

aj_by_python3() { # ADDRESS FILE
  printf '%s' "$1" | python3 -c '
import os, shutil, sys, urllib.error, urllib.request
path = sys.argv[1]
there = os.path.getsize(path) if os.path.exists(path) else 0
request = urllib.request.Request(sys.stdin.read().strip(), headers={"Range": f"bytes={there}-"} if there else {})
try:
    with urllib.request.urlopen(request, timeout=60) as answer, open(path, "ab" if answer.status == 206 else "wb") as file:
        shutil.copyfileobj(answer, file, 1 << 20)
        short = answer.length
except urllib.error.HTTPError as error:
    sys.exit(f"the server answered {error.code} {error.reason}")
except OSError as error:
    sys.exit(f"{type(error).__name__}: {error}")
sys.exit(f"{short} bytes did not come" if short else 0)
' "$2"
}

# What both kinds of tools share

aj_of_machine() { # LINES, sets aj_sum and aj_url; false when there is no line for this machine
  local aj_name aj_machine
  aj_machine=$(uname -m)
  while read -r aj_name aj_sum aj_url; do
    [[ $aj_name != "$aj_machine" ]] || return 0
  done <<<"$1"
  aj_sum='' aj_url=''
  return 1
}

aj_is_sum() { # FILE SHA256
  local aj_found
  aj_found=$(sha256sum <"$1") || return 1
  [[ ${aj_found%% *} == "$2" ]]
}
